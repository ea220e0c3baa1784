#include "base/end_note.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"

namespace hvdlite::base {
namespace {

class EndNoteTest : public ::testing::Test {
 protected:
  const Descriptor note_ = MakeEndNote().value();
  const Environment rank_ =
      FakeEnvironment({{kEndNoteVariable, absl::StrCat(note_.get())}});
};

TEST_F(EndNoteTest, IsEmptyByDefault) {
  EXPECT_EQ(ReadEndNote(note_).exit_code, std::nullopt);
  EXPECT_EQ(ReadEndNote(note_).reason, "");
}

TEST_F(EndNoteTest, FirstEntryIsTheCause) {
  NoteExit(rank_, 3);
  NoteWorldEnded(rank_, "rank 0 died");
  EXPECT_EQ(ReadEndNote(note_).exit_code, 3);
  EXPECT_EQ(ReadEndNote(note_).reason, "");
}

TEST_F(EndNoteTest, FirstReasonIsKept) {
  NoteWorldEnded(rank_, "rank 1\ndied");
  NoteWorldEnded(rank_, "rank 2 died");
  NoteExit(rank_, 1);
  EXPECT_EQ(ReadEndNote(note_).exit_code, std::nullopt);
  EXPECT_EQ(ReadEndNote(note_).reason, "rank 1 died");
}

TEST_F(EndNoteTest, ShutdownClearsTheReason) {
  NoteWorldEnded(rank_, "rank 1 called shutdown()");
  NoteWorldLeft(rank_);
  EXPECT_EQ(ReadEndNote(note_).reason, "");
  NoteWorldEnded(rank_, "rank 2 died, in the next world");
  EXPECT_EQ(ReadEndNote(note_).reason, "rank 2 died, in the next world");
}

TEST_F(EndNoteTest, ReasonIsKeptIfTheRankExitsBeforeItLeaves) {
  NoteWorldEnded(rank_, "rank 1 threw");
  NoteExit(rank_, 1);
  NoteWorldLeft(rank_);
  EXPECT_EQ(ReadEndNote(note_).exit_code, std::nullopt);
  EXPECT_EQ(ReadEndNote(note_).reason, "rank 1 threw");
}

TEST_F(EndNoteTest, LongReasonIsTruncated) {
  NoteWorldEnded(rank_, std::string(100'000, 'x'));
  NoteExit(rank_, 1);
  EXPECT_EQ(ReadEndNote(note_).reason, std::string(1000, 'x'));
}

TEST_F(EndNoteTest, OtherFileUnderTheSameDescriptorStaysUnchanged) {
  char path[] = "/tmp/end_note_test.XXXXXX";
  const Descriptor file(mkstemp(path));
  ASSERT_TRUE(file.valid());
  unlink(path);
  NoteExit(FakeEnvironment({{kEndNoteVariable, absl::StrCat(file.get())}}), 3);
  EXPECT_EQ(lseek(file.get(), 0, SEEK_END), 0);
  NoteExit(FakeEnvironment({{kEndNoteVariable, "none"}}), 3);
  NoteExit(FakeEnvironment({}), 3);
}

}  // namespace
}  // namespace hvdlite::base

// Gzipped traces: complete, cut off and damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/fakes/test_files.h"
#include "timeline/read/trace_file.h"
#include "timeline/read/trace_reader.h"

namespace hvdlite::timeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PackedTraceTest : public ::testing::Test {
 protected:
  // Packs `text` with gzip.
  std::string Packed(const std::string& text) {
    const std::string path = directory_.File("packed.gz");
    auto file = OutputFile::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Append(text).ok());
    EXPECT_TRUE((*file)->Commit().ok());
    return ReadWholeFile(path);
  }

  static std::string Events(int count) {
    std::string text = "[\n";
    for (int i = 0; i < count; ++i) {
      absl::StrAppend(&text, "{\"ts\":", i, ".", 100 + i * 7919 % 900,
                      ",\"dur\":1.000,\"ph\":\"X\",\"name\":\"event", i % 7,
                      "\",\"pid\":0,\"tid\":1},\n");
    }
    return text;
  }

  absl::StatusOr<Trace> Read(const std::string& bytes) {
    WriteFile(path_, bytes);
    return ReadTrace(path_);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.File("trace.json.gz");
};

TEST_F(PackedTraceTest, IsReadLikeAnUnpackedTrace) {
  const auto trace = Read(Packed(Events(1000)));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->slices.size(), 1000u);
  EXPECT_THAT(trace->warnings, IsEmpty());
}

TEST_F(PackedTraceTest, AllMembersAreRead) {
  const std::string text = Events(100);
  std::string bytes;
  for (size_t at = 0; at < text.size(); at += 1000) {
    bytes += Packed(text.substr(at, 1000));
  }
  bytes += Packed("");
  const auto trace = Read(bytes + std::string(512, '\0'));  // as tapes pad
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->slices.size(), 100u);
  EXPECT_THAT(trace->warnings, IsEmpty());
  const auto more = Read(bytes + "more");
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(more->slices.size(), 100u);
  EXPECT_THAT(more->warnings,
              ElementsAre(HasSubstr("after its gzip stream is ignored")));
}

TEST_F(PackedTraceTest, EveryCutIsReadUpToItsEnd) {
  const std::string whole = Packed(Events(80));
  size_t most = 0;
  for (size_t length = 2; length < whole.size(); ++length) {
    WriteFile(path_, whole.substr(0, length));
    const auto read = ReadTraceText(path_);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->warning, path_ + ": cut off: its gzip stream has no end");
    EXPECT_EQ(read->text, Events(80).substr(0, read->text.size()));
    EXPECT_GE(read->text.size(), most);
    most = read->text.size();
  }
  EXPECT_EQ(most, Events(80).size());
  const auto trace = Read(whole.substr(0, whole.size() * 3 / 4));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_GT(trace->slices.size(), 20u);
  EXPECT_THAT(trace->warnings,
              ::testing::Contains(HasSubstr("its gzip stream has no end")));
}

TEST_F(PackedTraceTest, WrongByteIsNoticedOrHarmless) {
  const std::string text = Events(100);
  const std::string whole = Packed(text);
  for (size_t at = 2; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
    WriteFile(path_, bytes);
    const auto read = ReadTraceText(path_);
    ASSERT_TRUE(read.ok()) << read.status();
    if (read->text != text) {
      EXPECT_NE(read->warning, "") << at;
    }
  }
}

TEST_F(PackedTraceTest, BombsAreRefused) {
  const std::string zeros = Packed(std::string(size_t{16} << 20, '\0'));
  std::string bytes;
  for (int i = 0; i < 5; ++i) bytes += zeros;
  const absl::Status status = Read(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("its ", bytes.size(), " bytes to more")));
}

TEST_F(PackedTraceTest, UnfinishedFilesAreRemoved) {
  {
    const auto file = OutputFile::Open(path_);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append("text").ok());
  }
  EXPECT_EQ(ReadTraceText(path_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(std::filesystem::is_empty(directory_.File("")));
}

}  // namespace
}  // namespace hvdlite::timeline

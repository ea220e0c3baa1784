#include "base/commit_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace hvdlite::base {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Storage that accepts commits only when the test allows it.
class SlowPlace {
 public:
  absl::Status Put(const StoredCommit& commit) {
    const MutexLock lock(&mutex_);
    begun_.push_back(commit.number);
    changed_.NotifyAll();
    while (!ready_) changed_.Wait(&mutex_);
    return status_;
  }
  void SetReady(bool ready) {
    const MutexLock lock(&mutex_);
    ready_ = ready;
    changed_.NotifyAll();
  }
  void SetStatus(const absl::Status& status) {
    const MutexLock lock(&mutex_);
    status_ = status;
  }
  void AwaitBegun(size_t count) {
    const MutexLock lock(&mutex_);
    while (begun_.size() < count) changed_.Wait(&mutex_);
  }
  std::vector<uint64_t> begun() {
    const MutexLock lock(&mutex_);
    return begun_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool ready_ ABSL_GUARDED_BY(mutex_) = true;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> begun_ ABSL_GUARDED_BY(mutex_);
};

class CommitWriterTest : public ::testing::Test {
 protected:
  void Write(uint64_t number) {
    writer_->Write(
        std::make_shared<StoredCommit>(StoredCommit{number, "bytes"}));
  }

  SlowPlace place_;
  std::vector<std::string> warnings_;  // read when nothing is being written
  std::unique_ptr<CommitWriter> writer_ = std::make_unique<CommitWriter>(
      [this](const StoredCommit& commit) { return place_.Put(commit); },
      [this](const std::string& text) { warnings_.push_back(text); });
};

TEST_F(CommitWriterTest, OnlyTheNewestCommitWaitsForTheOneBeingWritten) {
  EXPECT_TRUE(writer_->Wait());
  place_.SetReady(false);
  Write(1);
  place_.AwaitBegun(1);
  for (const uint64_t number : {2, 3, 4}) Write(number);
  EXPECT_THAT(place_.begun(), ElementsAre(1));
  place_.SetReady(true);
  EXPECT_TRUE(writer_->Wait());
  EXPECT_THAT(place_.begun(), ElementsAre(1, 4));
}

TEST_F(CommitWriterTest, DestructorWritesTheNewestCommit) {
  place_.SetReady(false);
  Write(1);
  place_.AwaitBegun(1);
  Write(2);
  place_.SetReady(true);
  writer_ = nullptr;
  EXPECT_THAT(place_.begun(), ElementsAre(1, 2));
}

TEST_F(CommitWriterTest, LackOfMemoryIsAFailure) {
  std::vector<std::string> warnings;
  bool has_memory = false;
  CommitWriter writer(
      [&](const StoredCommit&) {
        if (!has_memory) throw std::bad_alloc();
        return absl::OkStatus();
      },
      [&](const std::string& text) { warnings.push_back(text); });
  writer.Write(std::make_shared<const StoredCommit>());
  EXPECT_FALSE(writer.Wait());
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("no memory to write a commit")));
  has_memory = true;
  writer.Write(std::make_shared<const StoredCommit>());
  EXPECT_TRUE(writer.Wait());
}

TEST_F(CommitWriterTest, RepeatedFailuresGiveOneWarningUntilASuccess) {
  uint64_t number = 0;
  const auto write = [&](const absl::Status& status) {
    place_.SetStatus(status);
    Write(++number);
    return writer_->Wait();
  };
  EXPECT_FALSE(write(absl::UnavailableError("the disk is full")));
  EXPECT_FALSE(write(absl::UnavailableError("still")));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the disk is full")));
  EXPECT_TRUE(write(absl::OkStatus()));
  EXPECT_FALSE(write(absl::UnavailableError("full again")));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the disk is full"),
                                     HasSubstr("full again")));
}

}  // namespace
}  // namespace hvdlite::base

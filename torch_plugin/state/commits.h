// Commits: the newest commit of a training, and the places it is kept in.
#pragma once

#include <hvdlite/elastic.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "absl/strings/string_view.h"
#include "base/commit_store.h"
#include "base/commit_writer.h"

namespace hvdlite::elastic {

// In a commit's archive: its number.
inline constexpr char kCommitNumber[] = "commit";

// The launcher's store, which may have a commit, does not answer.
class StoreFailure : public std::runtime_error {
 public:
  explicit StoreFailure(absl::string_view text)
      : std::runtime_error(std::string(text)) {}
};

// In this process's memory; on rank 0 also in the launcher's store and in a
// file, which threads of their own bring it to. One thread uses it.
class Commits {
 public:
  explicit Commits(const StateOptions& options);

  // The newest, or null.
  const std::shared_ptr<const base::StoredCommit>& last() const {
    return last_;
  }
  const std::string& origin() const { return origin_; }  // for messages

  // The largest number of a commit that is known, here or on another rank.
  uint64_t newest_number() const { return number_; }
  void SetNewestNumber(uint64_t number) { number_ = number; }

  // `bytes` are the newest now, with the next number.
  void Keep(std::string bytes);
  // Brings the newest to the store and, where that is due, to the file.
  void Send(Save save);
  // Until what was sent last is there. Whether it is in the file, or need not
  // be.
  bool Flush();

  // The newest is what store or file has, unless there is a newer. Where that
  // cannot be told: a warning, or without one an exception: StoreFailure, or
  // what load_checkpoint() throws.
  void FindNewer();
  // The same, unless there is one.
  void Find() {
    if (last_ == nullptr) FindNewer();
  }
  // The newest is the file's newest whole generation, unless there is a newer.
  void ReadFile(const std::string& path);
  void Forget() { last_ = nullptr; }

 private:
  using Clock = std::chrono::steady_clock;

  void Take(base::StoredCommit commit, std::string origin);
  void ToFile();
  bool IsDue();

  const StateOptions options_;
  const std::string store_;
  std::shared_ptr<const base::StoredCommit> last_;
  std::shared_ptr<const base::StoredCommit> sent_;  // or found
  std::string origin_;
  uint64_t number_ = 0;
  uint64_t to_file_ = 0;  // the last that was given to the file's writer
  int64_t commits_since_save_ = 0;
  Clock::time_point saved_at_ = Clock::now();
  // After what they use.
  std::optional<base::CommitWriter> store_writer_;
  std::optional<base::CommitWriter> file_writer_;
};

}  // namespace hvdlite::elastic

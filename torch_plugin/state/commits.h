// Commits: the newest commit of a training, and the places that keep it.
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

// Key of a commit's number in its archive.
inline constexpr char kCommitNumber[] = "commit";

// The launcher's store does not answer. It may have a commit.
class StoreFailure : public std::runtime_error {
 public:
  explicit StoreFailure(absl::string_view text)
      : std::runtime_error(std::string(text)) {}
};

// Keeps commits in this process's memory. Threads of rank 0 also send them to
// the launcher's store and write them to a file. Use it in one thread.
class Commits {
 public:
  explicit Commits(const StateOptions& options);

  // The newest commit, or null.
  const std::shared_ptr<const base::StoredCommit>& last() const {
    return last_;
  }
  const std::string& origin() const { return origin_; }  // for messages

  // The largest known number of a commit, on this or another rank.
  uint64_t newest_number() const { return number_; }
  void SetNewestNumber(uint64_t number) { number_ = number; }

  // Makes `bytes` the newest commit and gives it the next number.
  void Keep(std::string bytes);
  // Sends the newest commit to the store and, if it is due, to the file.
  void Send(Save save);
  // Blocks until the last sent commit has arrived. Returns whether it is in the
  // file or need not be there.
  bool Flush();

  // Takes the commit of the store or the file if it is newer than the newest
  // one here. If a place cannot be read: logs a warning or, without any commit
  // here, throws StoreFailure or the exception of load_checkpoint().
  void FindNewer();
  // The same, but does nothing if there is a commit here.
  void Find() {
    if (last_ == nullptr) FindNewer();
  }
  // Takes the newest undamaged generation of the file, unless the commit here
  // is newer.
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
  std::shared_ptr<const base::StoredCommit> sent_;  // sent or found
  std::string origin_;
  uint64_t number_ = 0;
  uint64_t to_file_ = 0;  // number of the last commit given to file_writer_
  int64_t commits_since_save_ = 0;
  Clock::time_point saved_at_ = Clock::now();
  // These are last, since they use the members above.
  std::optional<base::CommitWriter> store_writer_;
  std::optional<base::CommitWriter> file_writer_;
};

}  // namespace hvdlite::elastic

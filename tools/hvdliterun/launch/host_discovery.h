// HostDiscovery: a user's program that says which hosts can be had, asked again
// and again while a job runs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "support/child_process.h"
#include "tools/hvdliterun/plan/allocation.h"

namespace hvdlite::launch {

class HostDiscovery {
 public:
  // `program` prints lines as a host file has them.
  explicit HostDiscovery(std::string program) : program_(std::move(program)) {}

  // Asks, and waits for the answer, half a minute at most. If it fails, the
  // last answer stays, with a warning on standard error. Errors: there is no
  // answer at all.
  absl::StatusOr<std::vector<Host>> Ask();

  // Does not wait: what is known now, while it is asked every five seconds.
  const std::vector<Host>& Poll(absl::Time now);

 private:
  void Begin(absl::Time now);
  // The answer of `asked_`, which has ended.
  void Take();
  absl::Status Read(const std::string& text, int exit_code);

  const std::string program_;
  std::vector<Host> hosts_;
  bool has_answered_ = false;
  std::string last_problem_;  // that was warned of
  std::unique_ptr<support::ChildProcess> asked_;
  std::string text_;    // of `asked_`, so far
  std::string errors_;  // likewise
  absl::Time asked_at_ = absl::InfinitePast();
};

}  // namespace hvdlite::launch

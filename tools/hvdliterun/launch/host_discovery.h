// HostDiscovery: runs a user's program that prints the available hosts. It runs
// repeatedly during a job.
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
  // `program` prints lines in the format of a host file.
  explicit HostDiscovery(std::string program) : program_(std::move(program)) {}

  // Runs the program and waits for its answer, at most half a minute. If it
  // fails, the last answer stays valid and a warning is logged. Error: there
  // has been no answer yet.
  absl::StatusOr<std::vector<Host>> Ask();

  // Does not wait: returns the last known hosts. The program runs every five
  // seconds.
  const std::vector<Host>& Poll(absl::Time now);

 private:
  void Begin(absl::Time now);
  // Takes the answer of `asked_`, which has ended.
  void Take();
  absl::Status Read(const std::string& text, int exit_code);

  const std::string program_;
  std::vector<Host> hosts_;
  bool has_answered_ = false;
  std::string last_problem_;  // the last logged problem
  std::unique_ptr<support::ChildProcess> asked_;
  std::string text_;    // output of `asked_` so far
  std::string errors_;  // errors of `asked_` so far
  absl::Time asked_at_ = absl::InfinitePast();
};

}  // namespace hvdlite::launch

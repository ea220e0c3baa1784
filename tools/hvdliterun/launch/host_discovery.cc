#include "tools/hvdliterun/launch/host_discovery.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <exception>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/environment.h"
#include "tools/hvdliterun/plan/host_environment.h"

namespace hvdlite::launch {
namespace {

constexpr absl::Duration kPause = absl::Seconds(5);
constexpr absl::Duration kLimit = absl::Seconds(30);
constexpr size_t kMaxBytes = size_t{1} << 20;

bool IsReadable(int descriptor, absl::Duration wait) {
  pollfd ready = {.fd = descriptor, .events = POLLIN, .revents = 0};
  return poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(wait))) > 0;
}

// Reads what is available now. Returns false at the end of the stream.
bool ReadSome(int descriptor, std::string& text) {
  while (IsReadable(descriptor, absl::ZeroDuration())) {
    char buffer[4096];
    const ssize_t count = read(descriptor, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > kMaxBytes) return true;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<Host>> HostDiscovery::Ask() {
  if (asked_ == nullptr) Begin(absl::Now());
  while (asked_ != nullptr) {
    if (IsReadable(asked_->output(), absl::Milliseconds(200)) ||
        absl::Now() - asked_at_ > kLimit) {
      Poll(absl::Now());
    }
  }
  if (!has_answered_) {
    return absl::InvalidArgumentError(
        absl::StrCat("--host-discovery ", program_, ": ", last_problem_,
                     "; the program must print lines such as 'n01 slots=4'"));
  }
  return hosts_;
}

const std::vector<Host>& HostDiscovery::Poll(absl::Time now) {
  if (asked_ == nullptr) {
    if (now - asked_at_ >= kPause) Begin(now);
    return hosts_;
  }
  ReadSome(asked_->error(), errors_);
  const bool has_ended = !ReadSome(asked_->output(), text_);
  const bool is_late =
      now - asked_at_ > kLimit || text_.size() + errors_.size() > kMaxBytes;
  if (is_late) asked_->Signal(SIGKILL);
  if (has_ended || is_late) Take();
  return hosts_;
}

void HostDiscovery::Begin(absl::Time now) {
  asked_at_ = now;
  text_.clear();
  errors_.clear();
  try {
    // A shell runs it, so that the program may have arguments.
    asked_ = std::make_unique<support::ChildProcess>(
        "/bin/sh", std::vector<std::string>{"sh", "-c", program_},
        base::EnvironmentEntries(base::ProcessEnvironment()));
  } catch (const std::exception& error) {
    last_problem_ = error.what();
  }
}

void HostDiscovery::Take() {
  const int exit_code = asked_->Wait();
  asked_.reset();
  const absl::Status status = Read(text_, exit_code);
  std::string problem(status.message());
  if (!status.ok() && has_answered_ && problem != last_problem_) {
    OwnLog().Warning(absl::StrCat("--host-discovery ", program_, ": ", problem,
                                  "; using its last answer"));
  }
  last_problem_ = std::move(problem);
}

absl::Status HostDiscovery::Read(const std::string& text, int exit_code) {
  if (exit_code != 0) {
    return absl::UnavailableError(absl::StrCat(
        "it ended with exit code ", exit_code,
        errors_.empty() ? "" : absl::StrCat(": ", errors_.substr(0, 200))));
  }
  absl::StatusOr<Allocation> answer = AllocationOfHostfile(text, "its output");
  if (!answer.ok()) return answer.status();
  hosts_ = std::move(answer->hosts);
  has_answered_ = true;
  return absl::OkStatus();
}

}  // namespace hvdlite::launch

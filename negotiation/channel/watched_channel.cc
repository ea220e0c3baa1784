// A control channel with a periodic check.
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/status_macros.h"
#include "negotiation/channel/control_channel.h"

namespace hvdlite::negotiation {
namespace {

class WatchedChannel final : public ControlChannel {
 public:
  WatchedChannel(std::unique_ptr<ControlChannel> inner,
                 std::function<absl::Status()> look, base::Descriptor timer)
      : inner_(std::move(inner)),
        look_(std::move(look)),
        timer_(std::move(timer)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  absl::string_view name() const override { return inner_->name(); }
  std::shared_ptr<const WorldLayout> layout() const override {
    return inner_->layout();
  }

  absl::Status Send(int to, std::string bytes) override {
    return inner_->Send(to, std::move(bytes));
  }

  absl::StatusOr<std::optional<ControlMessage>> TryReceive() override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    uint64_t periods = 0;
    if (read(timer_.get(), &periods, sizeof(periods)) == sizeof(periods)) {
      // A message that has arrived may explain more than the check.
      absl::StatusOr<std::optional<ControlMessage>> received =
          inner_->TryReceive();
      if (!received.ok() || received->has_value()) return received;
      broken_ = look_();
      HVDLITE_RETURN_IF_ERROR(broken_);
    }
    return inner_->TryReceive();
  }

  uint64_t delivered() override { return inner_->delivered(); }
  absl::Status Flush(absl::Duration timeout) override {
    return inner_->Flush(timeout);
  }
  bool PrepareToSleep() override { return inner_->PrepareToSleep(); }
  std::vector<std::string> TakeWarnings() override {
    return inner_->TakeWarnings();
  }

  std::vector<int> wake_descriptors() const override {
    std::vector<int> descriptors = inner_->wake_descriptors();
    if (!descriptors.empty()) descriptors.push_back(timer_.get());
    return descriptors;
  }

 private:
  const std::unique_ptr<ControlChannel> inner_;
  const std::function<absl::Status()> look_;
  const base::Descriptor timer_;
  absl::Status broken_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ControlChannel>> CreateWatchedChannel(
    std::unique_ptr<ControlChannel> inner, std::function<absl::Status()> look,
    absl::Duration period) {
  base::Descriptor timer(
      timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  const timespec every = absl::ToTimespec(period);
  const itimerspec times = {.it_interval = every, .it_value = every};
  if (!timer.valid() || timerfd_settime(timer.get(), 0, &times, nullptr) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "control channel: cannot create a timer: ", strerror(errno)));
  }
  return std::make_unique<WatchedChannel>(std::move(inner), std::move(look),
                                          std::move(timer));
}

}  // namespace hvdlite::negotiation

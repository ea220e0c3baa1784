// The control channel of a world of one rank.
#include <sys/eventfd.h>

#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "negotiation/channel/control_channel.h"

namespace hvdlite::negotiation {
namespace {

class SingleRankChannel final : public ControlChannel {
 public:
  explicit SingleRankChannel(base::Descriptor never_readable)
      : never_readable_(std::move(never_readable)) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  absl::string_view name() const override { return "SINGLE"; }

  absl::Status Send(int to, std::string) override {
    return absl::InternalError(
        absl::StrCat("a message to rank ", to, " of a world of one rank"));
  }
  absl::StatusOr<std::optional<ControlMessage>> TryReceive() override {
    return std::nullopt;
  }
  uint64_t delivered() override { return 0; }
  absl::Status Flush(absl::Duration) override { return absl::OkStatus(); }
  std::vector<int> wake_descriptors() const override {
    return {never_readable_.get()};
  }

 private:
  // Without a descriptor the channel would have to be polled.
  const base::Descriptor never_readable_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ControlChannel>> CreateSingleRankChannel() {
  base::Descriptor descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!descriptor.valid()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "control channel: cannot create a descriptor: ",
        std::generic_category().message(errno), "; see ulimit -n"));
  }
  return std::make_unique<SingleRankChannel>(std::move(descriptor));
}

}  // namespace hvdlite::negotiation

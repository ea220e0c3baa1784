#include <unistd.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "collective/in_process/in_process_communicator.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/world/backend.h"

namespace hvdlite::internal {
namespace {

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

class SingleBackend final : public Backend {
 public:
  SingleBackend(std::unique_ptr<collective::Communicator> communicator,
                std::unique_ptr<negotiation::ControlChannel> channel)
      : communicator_(std::move(communicator)), channel_(std::move(channel)) {
    topology_.host_of_rank = {HostName()};
    topology_.cross_rank_of_rank = {0};
  }

  const collective::Topology& topology() const override { return topology_; }
  collective::Communicator& communicator() override { return *communicator_; }
  negotiation::ControlChannel& channel() override { return *channel_; }
  const std::vector<std::string>& warnings() const override {
    return warnings_;
  }

  absl::Status Close() override {
    channel_.reset();
    communicator_.reset();
    return absl::OkStatus();
  }

  bool only_once() const override { return false; }

 private:
  const std::vector<std::string> warnings_;
  collective::Topology topology_;
  std::unique_ptr<collective::Communicator> communicator_;
  std::unique_ptr<negotiation::ControlChannel> channel_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> CreateSingleBackend() {
  std::vector<std::unique_ptr<collective::Communicator>> communicators =
      collective::CreateInProcessWorld(/*size=*/1);
  HVDLITE_ASSIGN_OR_RETURN(
      std::vector<std::unique_ptr<negotiation::ControlChannel>> channels,
      negotiation::CreateInProcessChannels(/*size=*/1));
  return std::make_unique<SingleBackend>(std::move(communicators.front()),
                                         std::move(channels.front()));
}

}  // namespace hvdlite::internal

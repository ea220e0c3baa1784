#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "base/status_macros.h"
#include "collective/in_process/in_process_communicator.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/world/backend.h"

namespace hvdlite::internal {
namespace {

class InProcessBackend final : public Backend {
 public:
  InProcessBackend(collective::Topology topology,
                   std::unique_ptr<collective::Communicator> communicator,
                   std::unique_ptr<negotiation::ControlChannel> channel)
      : topology_(std::move(topology)),
        communicator_(std::move(communicator)),
        channel_(std::move(channel)) {}

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

  void Abandon() override {
    channel_.release();
    communicator_.release();
  }

  bool only_once() const override { return false; }
  // One rank alone has nobody to agree with.
  bool can_be_replaced() const override { return topology_.size == 1; }

 private:
  const std::vector<std::string> warnings_;
  const collective::Topology topology_;
  std::unique_ptr<collective::Communicator> communicator_;
  std::unique_ptr<negotiation::ControlChannel> channel_;
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Backend>>> CreateInProcessBackends(
    int size) {
  std::vector<std::unique_ptr<collective::Communicator>> communicators =
      collective::CreateInProcessWorld(size);
  HVDLITE_ASSIGN_OR_RETURN(
      std::vector<std::unique_ptr<negotiation::ControlChannel>> channels,
      negotiation::CreateInProcessChannels(size));
  std::vector<std::string> hosts;
  std::vector<int> node_of_rank;
  for (int rank = 0; rank < size; ++rank) {
    hosts.push_back(size == 1 ? base::HostName() : absl::StrCat("host", rank));
    node_of_rank.push_back(rank);
  }
  std::vector<std::unique_ptr<Backend>> backends;
  for (size_t rank = 0; rank < communicators.size(); ++rank) {
    backends.push_back(std::make_unique<InProcessBackend>(
        collective::MakeTopology(static_cast<int>(rank), node_of_rank, hosts),
        std::move(communicators[rank]), std::move(channels[rank])));
  }
  return backends;
}

}  // namespace hvdlite::internal

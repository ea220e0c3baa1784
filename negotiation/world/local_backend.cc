#include <string>
#include <utility>
#include <vector>

#include "negotiation/world/backend.h"

namespace hvdlite::internal {
namespace {

class LocalBackend final : public Backend {
 public:
  LocalBackend(collective::Topology topology,
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
  // A single rank has no other rank to agree with.
  bool can_be_replaced() const override { return topology_.size == 1; }

 private:
  const std::vector<std::string> warnings_;
  const collective::Topology topology_;
  std::unique_ptr<collective::Communicator> communicator_;
  std::unique_ptr<negotiation::ControlChannel> channel_;
};

}  // namespace

std::unique_ptr<Backend> CreateLocalBackend(
    collective::Topology topology,
    std::unique_ptr<collective::Communicator> communicator,
    std::unique_ptr<negotiation::ControlChannel> channel) {
  return std::make_unique<LocalBackend>(
      std::move(topology), std::move(communicator), std::move(channel));
}

}  // namespace hvdlite::internal

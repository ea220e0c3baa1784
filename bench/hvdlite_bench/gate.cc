#include "bench/hvdlite_bench/gate.h"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "collective/communicator.h"
#include "collective/mpi/mpi_communicator.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/protocol/gate.h"
#include "negotiation/protocol/membership.h"
#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/tree.h"
#include "negotiation/world/backend.h"

namespace hvdlite::tools {
namespace {

void Check(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(std::string(status.message()));
}

template <typename T>
T ValueOf(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

}  // namespace

class GateAlone::Impl {
 public:
  Impl()
      : session_(ValueOf(collective::MpiSession::Start())),
        flat_(ValueOf(collective::CreateMpiCommunicator())),
        channel_(MakeChannel()),
        tree_(negotiation::PlaceInTree(channel_->rank(),
                                       static_cast<int>(Config().tree_arity),
                                       *channel_->layout())),
        membership_(channel_->rank(), channel_->size(), tree_),
        gates_(channel_->rank(), tree_, membership_) {
    if (tree_.parent >= 0) neighbours_.push_back(tree_.parent);
    for (const auto& child : tree_.children) neighbours_.push_back(child.rank);
    gates_.Open(1, 0, false);
  }

  // The messages of the last gate must be delivered before the channel is
  // destroyed.
  ~Impl() {
    const bool flushed =
        channel_->Flush(absl::Seconds(10)).ok() && flat_->Barrier().ok();
    if (!flushed) channel_.reset();
  }

  void Meet() {
    ++number_;
    // A rank that has passed this gate may arrive at the next one before this
    // rank passes.
    gates_.Open(number_ + 1, 0, false);
    gates_.Arrive(number_, 0);
    while (true) {
      Tell();
      if (gates_.Passed(number_).has_value()) break;
      while (std::optional<negotiation::ControlMessage> message =
                 ValueOf(channel_->TryReceive())) {
        if (!received_.ParseFromString(message->bytes)) {
          throw std::runtime_error("cannot parse a message of a gate");
        }
        for (const uint64_t gate : received_.gates()) {
          Check(gates_.OnMessage(message->from, gate));
        }
      }
    }
    gates_.Close(number_);
  }

 private:
  std::unique_ptr<negotiation::ControlChannel> MakeChannel() {
    std::vector<std::string> warnings;
    return ValueOf(internal::ChooseControlChannel(
        Config(), session_->topology(), *flat_, warnings));
  }

  void Tell() {
    for (const int neighbour : neighbours_) {
      sent_.Clear();
      gates_.TakeOutgoing(neighbour, *sent_.mutable_gates());
      if (!sent_.gates().empty())
        Check(channel_->Send(neighbour, sent_.SerializeAsString()));
    }
  }

  const std::unique_ptr<collective::MpiSession> session_;
  const std::unique_ptr<collective::Communicator> flat_;
  std::unique_ptr<negotiation::ControlChannel> channel_;
  const negotiation::TreePosition tree_;
  const negotiation::Membership membership_;
  negotiation::Gates gates_;
  std::vector<int> neighbours_;
  uint64_t number_ = 0;
  negotiation::wire::Message sent_;
  negotiation::wire::Message received_;
};

GateAlone::GateAlone() : impl_(std::make_unique<Impl>()) {}
GateAlone::~GateAlone() = default;
void GateAlone::Meet() { impl_->Meet(); }

}  // namespace hvdlite::tools

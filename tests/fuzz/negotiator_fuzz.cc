// Worlds of real Negotiators. Messages are delivered in any order, changed on
// the way, or invented, as by a broken peer or a peer of another version. Each
// Negotiator must continue or end its world with a reason. None may crash, and
// no operation of a rank may end twice.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "negotiation/protocol/negotiator.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/made_up_messages.h"
#include "tests/testing/worlds/sim_world.h"

namespace hvdlite::fuzz {
namespace {

using negotiation::Collective;
using negotiation::Request;
using testing::SimWorld;
using testing::WorldShape;

struct Settings {
  WorldShape shape;
  negotiation::Negotiator::Options options;
};

Settings AnySettings(FuzzInput& input) {
  Settings settings;
  settings.shape.ranks = input.Below(7) + 1;
  settings.shape.ranks_per_host = input.Below(3) + 1;
  settings.shape.arity = input.Below(3) + 1;
  negotiation::Negotiator::Options& options = settings.options;
  options.min_batch_bytes = input.Bool() ? 1 : 4096;
  options.fusion_threshold_bytes = 8192;
  options.max_idle_uses = 3;
  options.stall_warning = absl::Seconds(2);
  options.stall_failure = absl::Seconds(input.Bool() ? 5 : 1000);
  return settings;
}

class DamagedWorld {
 public:
  DamagedWorld(FuzzInput& input, const Settings& settings)
      : input_(input),
        world_(settings.shape, settings.options),
        last_decision_(settings.shape.ranks) {
    std::vector<int> hosts;
    for (int rank = 0; rank < world_.size(); ++rank) {
      hosts.push_back(rank / settings.shape.ranks_per_host);
    }
    const negotiation::WorldLayout layout(hosts);
    for (int rank = 0; rank < world_.size(); ++rank) {
      neighbours_.push_back(
          negotiation::PlaceInTree(rank, settings.shape.arity, layout));
    }
    // Progress does the same.
    world_.on_refused = [this](int rank, const std::string& why) {
      world_[rank].Abort(why);
    };
    world_.on_delivered = [this](int rank, const wire::Message& message) {
      const auto& decisions = message.directive().decisions();
      if (!decisions.empty()) {
        last_decision_[rank] = decisions.rbegin()->number();
      }
    };
  }

  void Run() {
    for (int steps = 0; !input_.empty() && steps < 2000; ++steps) Step();
    for (int steps = 0; steps < 200; ++steps) {
      CarryOutEverywhere();
      DeliverAll();
    }
    for (int seconds = 0; seconds < 20; ++seconds) {
      Advance(absl::Seconds(1));
      DeliverAll();
    }
  }

 private:
  void Step() {
    const int rank = input_.Below(world_.size());
    switch (input_.Below(12)) {
      case 0:
      case 1: {
        const Request request = AnyRequest();
        Submit(rank, request, static_cast<uint32_t>(input_.Below(3)));
        break;
      }
      case 2: {  // all ranks submit the same request
        const Request request = AnyRequest();
        for (int each = 0; each < world_.size(); ++each) {
          Submit(each, request, 0);
        }
        break;
      }
      case 3:
        CarryOut(rank);
        break;
      case 4:
        CarryOutEverywhere();
        DeliverAll();
        break;
      case 5:
        Advance(absl::Milliseconds(int64_t{50} << input_.Below(8)));
        break;
      case 6:
        world_.MarkUrgent(rank, AnyName(input_));
        break;
      case 7:
        EndOf(rank);
        break;
      case 8: {  // a message is changed on the way
        const auto link = BusyLink();
        if (!link.has_value()) break;
        std::string& bytes = world_.Front(*link);
        for (int left = input_.Below(3) + 1; left > 0 && !bytes.empty();
             --left) {
          bytes[input_.Number() % bytes.size()] =
              static_cast<char>(input_.Byte());
        }
        break;
      }
      case 9: {  // a message is delivered twice, or to another rank
        const auto link = BusyLink();
        if (!link.has_value()) break;
        world_.Deliver({input_.Below(world_.size()), rank},
                       world_.Front(*link));
        break;
      }
      default: {
        wire::Message message;
        FillMessage(input_, last_decision_[rank] + 1, &message);
        world_.Deliver({AnyNeighbour(rank), rank}, message.SerializeAsString());
        break;
      }
    }
  }

  // Returns a neighbour in the tree or, sometimes, any other rank.
  int AnyNeighbour(int rank) {
    const negotiation::TreePosition& tree = neighbours_[rank];
    const int children = static_cast<int>(tree.children.size());
    const int choice = input_.Below(children + 2);
    if (choice < children) return tree.children[choice].rank;
    return choice == children && tree.parent >= 0 ? tree.parent
                                                  : input_.Below(world_.size());
  }

  Request AnyRequest() {
    Request request;
    request.name = absl::StrCat("t", input_.Below(6));
    const int kind = input_.Below(16);
    request.collective = kind < negotiation::kNumCollectives
                             ? static_cast<Collective>(kind)
                             : Collective::kAllreduce;
    if (request.collective == Collective::kJoin) {
      request.name = negotiation::kJoinName;
      return request;
    }
    if (request.traits().memory != negotiation::MemoryRule::kNone) {
      request.tensors = {{.shape = {input_.Below(4) * 300, 2}}};
    }
    if (request.rows_differ()) {
      request.tensors[0].shape[0] = negotiation::kAnyLength;
    }
    if (request.collective == Collective::kAddProcessSet) {
      for (int rank = 0; rank < world_.size(); ++rank) {
        if (input_.Bool()) request.members.push_back(rank);
      }
    }
    request.removed = input_.Below(3);
    if (input_.Below(4) == 0) request.process_set = input_.Below(3);
    return request;
  }

  // Submits only if no operation of that name and no join is pending, as
  // callers of a Negotiator must.
  void Submit(int rank, const Request& request, uint32_t step) {
    if (world_.IsPending(rank, request.name) ||
        world_.IsPending(rank, std::string(negotiation::kJoinName))) {
      return;
    }
    world_.Submit(rank, request, /*absent=*/input_.Below(8) == 0, step);
  }

  void EndOf(int rank) {
    const int choice = input_.Below(20);
    if (choice < 3) world_.Leave(rank, "the test ends");
    if (choice == 3) world_.Abort(rank, "it is tired");
    if (choice > 9) world_.Release(rank, AnyName(input_));
  }

  void Advance(absl::Duration by) {
    world_.Advance(by);
    for (int rank = 0; rank < world_.size(); ++rank) {
      world_[rank].next_deadline_ns();
    }
  }

  std::optional<SimWorld::Link> BusyLink() {
    const std::vector<SimWorld::Link> busy = world_.BusyLinks();
    if (busy.empty()) return std::nullopt;
    return busy[input_.Number() % busy.size()];
  }

  // The number of rounds is limited: invented messages can be answered forever.
  void DeliverAll() {
    for (int rounds = 0; rounds < 50 && world_.DeliverOneOfEachLink();
         ++rounds) {
    }
  }

  void CarryOut(int rank) {
    if (world_.CarryOut(rank)) {
      last_decision_[rank] = world_.done(rank).back().number;
    }
  }
  void CarryOutEverywhere() {
    for (int rank = 0; rank < world_.size(); ++rank) CarryOut(rank);
  }

  FuzzInput& input_;
  SimWorld world_;
  std::vector<uint64_t> last_decision_;  // last known decision, by rank
  std::vector<negotiation::TreePosition> neighbours_;
};

}  // namespace
}  // namespace hvdlite::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvdlite::fuzz::FuzzInput input(data, size);
  const hvdlite::fuzz::Settings settings = hvdlite::fuzz::AnySettings(input);
  hvdlite::fuzz::DamagedWorld(input, settings).Run();
  return 0;
}

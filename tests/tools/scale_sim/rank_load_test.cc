// Tests that the load of the busiest rank does not grow with the world.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/protocol/negotiator.h"
#include "tests/testing/unless_sanitized.h"

namespace hvdlite::scale_sim {
namespace {

using negotiation::Decision;
using negotiation::Negotiator;
using negotiation::Request;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRanksPerNode = 48;

// The messages that a rank sends and receives.
struct RankLoad {
  int64_t messages = 0;
  int64_t bytes = 0;
};

// The results of one phase.
struct Phase {
  RankLoad busiest;  // maxima over the ranks, each for itself
  RankLoad root;
  std::vector<std::string> warnings;
};

std::vector<Request> Requests(const std::string& kind, int count) {
  std::vector<Request> requests(count);
  for (int i = 0; i < count; ++i) {
    requests[i].name = absl::StrCat(kind, i, ".weight");
    requests[i].tensors = {{.shape = {1024}}};
    requests[i].average = true;
  }
  return requests;
}

// Runs the phases one after the other. The last rank is late. Messages arrive
// in the order in which they were sent.
class Phases {
 public:
  Phases(int size, int stalled);
  const Phase& operator[](const std::string& phase) { return phases_[phase]; }

 private:
  struct Message {
    int from;
    int to;
    std::string bytes;
  };

  int size() const { return static_cast<int>(ranks_.size()); }
  void Count(int rank, const std::string& bytes) {
    ++loads_[rank].messages;
    loads_[rank].bytes += static_cast<int64_t>(bytes.size());
  }

  void Collect(int rank) {
    for (const auto& outgoing : ranks_[rank]->TakeOutgoing()) {
      queue_.push_back(
          {rank, outgoing.to, outgoing.message.SerializeAsString()});
      Count(rank, queue_.back().bytes);
    }
    for (std::string& warning : ranks_[rank]->TakeWarnings()) {
      warnings_.push_back(std::move(warning));
    }
  }

  // Ranks [first, end) submit all requests and wait for the last one first.
  void Submit(const std::vector<Request>& requests, int first, int end) {
    requests_ = requests;
    for (int rank = first; rank < end; ++rank) {
      for (size_t i = 0; i < requests.size(); ++i) {
        ranks_[rank]->Submit(requests[i], /*absent=*/false, i);
        pending_[rank].insert(i);
      }
      WaitForLast(rank);
    }
    Settle();
  }

  void WaitForLast(int rank) {
    if (!pending_[rank].empty()) {
      ranks_[rank]->MarkUrgent(requests_[*pending_[rank].rbegin()].name);
    }
    Collect(rank);
  }

  bool Execute(int rank) {
    ranks_[rank]->Plan();
    Collect(rank);
    const std::optional<Decision> decision = ranks_[rank]->NextDecision();
    Collect(rank);
    if (!decision.has_value()) return false;
    for (const Decision::Tensor& tensor : decision->tensors) {
      pending_[rank].erase(*tensor.token);
    }
    if (decision->kind == Decision::Kind::kShutdown) ++shut_down_;
    if (decision->has_gate) ranks_[rank]->OnDone();
    WaitForLast(rank);
    return true;
  }

  // Runs until no message and no decision is left.
  void Settle() {
    for (bool moved = true; moved;) {
      while (!queue_.empty()) {
        const Message message = std::move(queue_.front());
        queue_.pop_front();
        Count(message.to, message.bytes);
        negotiation::wire::Message content;
        ASSERT_TRUE(content.ParseFromString(message.bytes));
        ASSERT_TRUE(ranks_[message.to]->OnMessage(message.from, content).ok());
        Collect(message.to);
      }
      moved = false;
      for (int rank = 0; rank < size(); ++rank) moved |= Execute(rank);
      moved |= !queue_.empty();
    }
  }

  // Lets time pass until the first search for late ranks, but not the second.
  void WaitForWarning() {
    for (int seconds = 0; seconds < 90; seconds += 15) {
      now_ns_ += 15'000'000'000;
      for (int rank = 0; rank < size(); ++rank) {
        ranks_[rank]->Advance(now_ns_);
        Collect(rank);
      }
      Settle();
    }
  }

  void Record(const std::string& name, const std::function<void()>& phase) {
    loads_.assign(size(), {});
    warnings_.clear();
    phase();
    Phase& recorded = phases_[name];
    for (const RankLoad& load : loads_) {
      RankLoad& most = recorded.busiest;
      most.messages = std::max(most.messages, load.messages);
      most.bytes = std::max(most.bytes, load.bytes);
    }
    recorded.root = loads_[0];
    recorded.warnings = warnings_;
  }

  std::vector<std::unique_ptr<Negotiator>> ranks_;
  std::vector<std::set<size_t>> pending_;  // indices in requests_, by rank
  std::vector<Request> requests_;
  std::deque<Message> queue_;
  std::vector<RankLoad> loads_;  // in this phase, by rank
  std::vector<std::string> warnings_;
  std::map<std::string, Phase> phases_;
  int shut_down_ = 0;
  int64_t now_ns_ = 1;
};

Phases::Phases(int size, int stalled) : pending_(size), loads_(size) {
  std::vector<int> nodes;
  std::vector<std::string> names;
  for (int rank = 0; rank < size; ++rank) {
    nodes.push_back(rank / kRanksPerNode);
    names.push_back(absl::StrCat("node", nodes.back()));
  }
  Negotiator::Options options;
  options.layout = std::make_shared<negotiation::WorldLayout>(nodes, names);
  options.heartbeat.timeout = absl::InfiniteDuration();
  for (options.rank = 0; options.rank < size; ++options.rank) {
    ranks_.push_back(std::make_unique<Negotiator>(options));
    ranks_.back()->Advance(now_ns_);
  }
  const std::vector<Request> training = Requests("gradient.layer", 40);
  const std::vector<Request> missing = Requests("stalled.layer", stalled);
  const int last = size - 1;
  const auto step = [&] { Submit(training, 0, size); };
  const auto leave = [&](int rank) {
    ranks_[rank]->Leave("the end");
    Collect(rank);
  };
  Record("announcing", [&] { step(), step(); });
  Record("steady", step);
  Record("one late", [&] { Submit(missing, 0, last), WaitForWarning(); });
  Submit(missing, last, size);
  Record("one early", [&] { Submit(missing, last, size), WaitForWarning(); });
  Submit(missing, 0, last);
  for (const std::set<size_t>& pending : pending_) EXPECT_TRUE(pending.empty());
  Record("late to leave", [&] {
    for (int rank = 0; rank < last; ++rank) leave(rank);
    Settle();
    WaitForWarning();
  });
  Record("shutdown", [&] { leave(last), Settle(); });
  EXPECT_EQ(shut_down_, size);
}

// A rank that leads its node has a parent, 8 children on its node and 8 on
// other nodes. No bound below depends on the number of ranks.
constexpr int64_t kLinks = 17;

TEST(RankLoadTest, LoadOfTheBusiestRankDoesNotGrowWithTheWorld) {
  for (const int ranks : {64, hvdlite::testing::UnlessSanitized(1024, 256)}) {
    Phases phases(ranks, 100);
    const auto expect = [&](const std::string& phase, int64_t messages,
                            int64_t bytes) {
      SCOPED_TRACE(absl::StrCat(phase, ", ", ranks, " ranks"));
      EXPECT_LE(phases[phase].busiest.messages, messages * kLinks);
      EXPECT_LE(phases[phase].busiest.bytes, bytes * kLinks);
    };
    // Two steps. Each has a report up, a directive down that asks for it, one
    // message per bucket, and two for the gate of each bucket.
    expect("announcing", 16, 20'000);
    expect("steady", 8, 200);
    // Announcements, a report of stalls, a probe, an answer.
    expect("one late", 6, 10'000);
    expect("one early", 6, 10'000);
    // The first and the last departure, the last call and its answer, the
    // decision, and the messages above.
    expect("late to leave", 8, 1000);
    expect("shutdown", 3, 200);

    // Warnings name the late ranks in a text of bounded length.
    const int last = ranks - 1;
    const std::string name =
        absl::StrCat("rank ", last, " (node", last / kRanksPerNode, ")");
    EXPECT_THAT(
        phases["one late"].warnings,
        ElementsAre(AllOf(HasSubstr("and 96 more have waited 1m"),
                          HasSubstr(absl::StrCat("for 1 of ", ranks, " ranks")),
                          HasSubstr(absl::StrCat(
                              name, ": last submitted 'gradient.layer39.")))));
    EXPECT_THAT(
        phases["one early"].warnings,
        ElementsAre(AllOf(
            HasSubstr(absl::StrCat("for ", last, " of ", ranks, " ranks")),
            HasSubstr("rank 7 (node0): last submitted"),
            HasSubstr(absl::StrCat("; ranks 8-", last - 1, ".")))));
    EXPECT_THAT(phases["late to leave"].warnings,
                ElementsAre(HasSubstr(
                    absl::StrCat("'shutdown()' has waited 1m for 1 of ", ranks,
                                 " ranks to call it: ", name))));
  }
}

TEST(RankLoadTest, StallSearchDoesNotDependOnTheNumberOfWaitingOperations) {
  const RankLoad few = Phases(64, 12)["one early"].root;
  const RankLoad many = Phases(64, 100)["one early"].root;
  // Only the early rank has announced operations.
  EXPECT_EQ(many.messages, few.messages);
  EXPECT_LE(many.bytes, few.bytes + kLinks);
}

}  // namespace
}  // namespace hvdlite::scale_sim

// All orders in which messages, submissions, calls of the data plane and one
// fault can follow one another, within a bound, on the real Negotiator with its
// gates and its watch over the others: nobody waits for ever, nobody does
// something else than the others, everybody ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tests/testing/fakes/gradient_request.h"
#include "tests/testing/unless_sanitized.h"
#include "tests/testing/worlds/model_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::ModelWorld;
using Action = ModelWorld::Action;

// Explores depth first what can happen. In each state there is one action that
// is the usual next one; an order of events is as far away as the number of
// times that it takes another one. All orders up to `max_deviations` away are
// covered; two orders after which every rank has seen the same, in the same
// order, are one (they differ in what was independent), and are explored once.
// Once time passes, things happen in the usual order.
class Explorer {
 public:
  Explorer(const ModelWorld::Options& options, int max_deviations,
           std::optional<Action> fault = std::nullopt)
      : options_(options), max_deviations_(max_deviations), fault_(fault) {}

  // Returns the first order of events with a bad end, as text; empty if there
  // is none.
  std::string Run() {
    // The choices of the path that is being explored, and how many there were.
    std::vector<Choice> path;
    do {
      const std::string violation = RunPath(path);
      if (!violation.empty()) return violation;
    } while (NextPath(path));
    return "";
  }

  int64_t paths() const { return paths_; }
  size_t states() const { return explored_.size(); }

 private:
  struct Choice {
    size_t taken = 0;
    size_t available = 0;
    int deviations = 0;  // before it
    bool last_is_fault = false;
  };

  // A fault may come at any time, at no cost.
  static bool Deviates(const Choice& choice, size_t taken) {
    return taken > 0 &&
           !(choice.last_is_fault && taken + 1 == choice.available);
  }

  std::string RunPath(std::vector<Choice>& path) {
    ++paths_;
    ModelWorld world(options_);
    std::vector<Action> done;
    int deviations = 0;
    size_t depth = 0;
    while (!world.AllEnded()) {
      const std::vector<Action> enabled = world.Enabled(fault_);
      const bool last_is_fault =
          fault_.has_value() && !enabled.empty() && enabled.back() == *fault_;
      if (enabled.empty() || (last_is_fault && enabled.size() == 1)) {
        if (world.ticks() > ModelWorld::kPatienceTicks) {
          return Report(world, done, "not everybody ends");
        }
        world.Tick();
        continue;
      }
      if (world.ticks() > 0) {  // everything has gone wrong that will
        world.Do(enabled.front());
        continue;
      }
      if (depth == path.size()) {
        // New ground: was it seen with at least as many deviations left?
        const int left = max_deviations_ - deviations;
        const auto [seen, first] =
            explored_.try_emplace(world.Fingerprint(), left);
        if (!first && seen->second >= left) return world.violation();
        seen->second = left;
        path.push_back({0, enabled.size(), deviations, last_is_fault});
      }
      const Choice& choice = path[depth++];
      if (Deviates(choice, choice.taken)) ++deviations;
      done.push_back(enabled[choice.taken]);
      world.Do(done.back());
      if (!world.violation().empty()) {
        return Report(world, done, world.violation());
      }
    }
    world.CheckEnd(fault_.has_value());
    if (!world.violation().empty()) {
      return Report(world, done, world.violation());
    }
    return "";
  }

  // The next one in depth-first order; false if there is none.
  bool NextPath(std::vector<Choice>& path) {
    while (!path.empty()) {
      Choice& last = path.back();
      while (++last.taken < last.available) {
        if (!Deviates(last, last.taken) || last.deviations < max_deviations_) {
          return true;
        }
      }
      path.pop_back();
    }
    return false;
  }

  static std::string Report(const ModelWorld& world,
                            const std::vector<Action>& done,
                            const std::string& what) {
    std::string text = what + " after\n";
    for (const Action& action : done) {
      text += "  " + world.Describe(action) + "\n";
    }
    return text + world.DescribeState();
  }

  const ModelWorld::Options options_;
  const int max_deviations_;
  const std::optional<Action> fault_;
  std::unordered_map<uint64_t, int> explored_;  // deviations that were left
  int64_t paths_ = 0;
};

Request Sum(const std::string& name, ProcessSetId process_set,
            int64_t elements = 16) {
  Request request = hvdlite::testing::Gradient(name, elements);
  request.process_set = process_set;
  return request;
}

Request AddSet(std::vector<int> members) {
  Request request;
  request.name = "add";
  request.collective = Collective::kAddProcessSet;
  request.members = std::move(members);
  return request;
}

// Longer than a ring.
const std::string kLong(300, 'z');

// Ranks 0 and 1 on one host, 2 on another; two sets that overlap in rank 1, to
// one of which rank 0 relays; and an operation of all, whose messages do not
// fit the rings.
ModelWorld::Options ThreeRanks() {
  return {.size = 3,
          .host_of_rank = {0, 0, 1},
          .process_sets = {{0, 1}, {1, 2}},
          .programs = {{Sum("a", 1), Sum(kLong, 0)},
                       {Sum("b", 2), Sum("a", 1), Sum(kLong, 0)},
                       {Sum(kLong, 0), Sum("b", 2)}}};
}

// A chain, 0 - 1 - 2 - 3, in which each of two sets relays through the other;
// in one of them, a batch follows another.
ModelWorld::Options Chain() {
  Request then = Sum("then", 2);
  then.prescale_factor = 2;  // not in one batch with what is before it
  return {.size = 4,
          .host_of_rank = {0, 0, 0, 0},
          .tree_arity = 1,
          .process_sets = {{0, 2}, {1, 3}},
          .programs = {{Sum("a", 1)},
                       {Sum("b", 2), then},
                       {Sum("a", 1)},
                       {Sum("b", 2), then}}};
}

// The same chain, in which the relays have a batch of their own before those in
// which each relays for the other.
ModelWorld::Options ChainWhoseRelaysMeetFirst() {
  return {.size = 4,
          .host_of_rank = {0, 0, 0, 0},
          .tree_arity = 1,
          .process_sets = {{1, 2}, {1, 3}, {0, 2}},
          .programs = {{Sum("c", 3)},
                       {Sum("a", 1), Sum("b", 2)},
                       {Sum("a", 1), Sum("c", 3)},
                       {Sum("b", 2)}}};
}

// A longer chain: the relays of two batches, one behind another, have a batch
// of their own after them.
ModelWorld::Options ChainWhoseRelaysMeetLast() {
  Request then = Sum("then", 1);
  then.prescale_factor = 2;
  return {.size = 5,
          .host_of_rank = {0, 0, 0, 0, 0},
          .tree_arity = 1,
          .hears_first = true,
          .process_sets = {{1, 4}, {2, 3}},
          .programs = {{},
                       {Sum("a", 1), then},
                       {Sum("b", 2)},
                       {Sum("b", 2)},
                       {Sum("a", 1), then}}};
}

// Everybody agrees on a failure whose text does not fit the ring, and goes on
// to make a process set, which blocks.
ModelWorld::Options LongFailure() {
  return {.size = 2,
          .host_of_rank = {0, 0},
          .process_sets = {},
          .programs = {{Sum(kLong, 0, 1), AddSet({0, 1})},
                       {Sum(kLong, 0, 2), AddSet({0, 1})}}};
}

// Ids are forgotten as soon as two others have been used, so also while ranks
// report by them.
ModelWorld::Options IdsThatAreForgotten() {
  const auto scaled = [](const std::string& name, double by) {
    Request request = Sum(name, 0);
    request.prescale_factor = by;  // not in one batch with the others
    return request;
  };
  const Request a = Sum("a", 0), b = scaled("b", 2), c = scaled("c", 3);
  return {.size = 3,
          .host_of_rank = {0, 0, 0},
          .tree_arity = 1,
          .process_sets = {},
          .run_before = {a, b, a, b},
          .max_idle_uses = 2,
          .programs = {{b, c, a}, {a, b, c}, {c, a, b}}};
}

constexpr int kFewerDeviations = hvdlite::testing::UnlessSanitized(0, 1);

void ExpectNothingFoundAroundUsualOrder(
    const ModelWorld::Options& options, int deviations,
    std::optional<Action> fault = std::nullopt) {
  deviations = std::max(1, deviations - kFewerDeviations);
  Explorer explorer(options, deviations, fault);
  EXPECT_EQ(explorer.Run(), "");
  EXPECT_GT(explorer.paths(), 1);
  std::cout << explorer.paths() << " orders, " << explorer.states()
            << " states\n";
}

// Around either usual order, in one of which leaves do not say that they wait;
// under a sanitizer, around one.
void ExpectNothingFound(ModelWorld::Options options, int deviations,
                        std::optional<Action> fault = std::nullopt) {
  ExpectNothingFoundAroundUsualOrder(options, deviations, fault);
  if (kFewerDeviations > 0) return;
  options.hears_first = !options.hears_first;
  options.leaves_wait = false;
  ExpectNothingFoundAroundUsualOrder(options, deviations, fault);
}

TEST(ModelCheckTest, OverlappingSetsAndLongMessagesNeverDeadlock) {
  ExpectNothingFound(ThreeRanks(), 3);
}

TEST(ModelCheckTest, LeavesThatAreNotCountedOnNeverDeadlock) {
  ModelWorld::Options options = ThreeRanks();
  options.leaves_wait = false;
  ExpectNothingFoundAroundUsualOrder(options, 3);
}

TEST(ModelCheckTest, SetsThatRelayForOneAnotherNeverDeadlock) {
  ExpectNothingFound(Chain(), 3);
}

// Finds it if relays stay out of later calls only once they have heard
// something to relay: 3 begins to block having heard nothing of the gate of
// "then", and waits for 2, which has heard of it by then, and waits for 4's
// arrival, which 3 is to relay.
TEST(ModelCheckTest, RelaysThatHaveHeardNothingYetNeverDeadlock) {
  ExpectNothingFoundAroundUsualOrder(ChainWhoseRelaysMeetLast(), 3);
}

TEST(ModelCheckTest, MakingASetAfterALongMessageNeverDeadlocks) {
  ExpectNothingFound(LongFailure(), 5);
}

TEST(ModelCheckTest, IdsThatAreForgottenWhileRanksReportThemDoNoHarm) {
  ExpectNothingFound(IdsThatAreForgotten(), 3);
}

class ModelCheckFaultTest
    : public ::testing::TestWithParam<std::tuple<Action::Kind, int>> {};

TEST_P(ModelCheckFaultTest, EverybodyElseEnds) {
  const auto [kind, rank] = GetParam();
  ExpectNothingFound(ThreeRanks(), 1, Action{kind, rank});
}

INSTANTIATE_TEST_SUITE_P(Faults, ModelCheckFaultTest,
                         ::testing::Combine(::testing::Values(Action::kCrash,
                                                              Action::kStop),
                                            ::testing::Values(0, 1, 2)));

// That the search finds a deadlock if there is one: rank 0 comes to the gate of
// the second batch last, and tells so behind a text that does not fit the ring.
TEST(ModelCheckTest, NewsOfAGateThatStayWithABlockedRankAreFound) {
  const ModelWorld::Options options = {
      .size = 2,
      .host_of_rank = {0, 0},
      .process_sets = {{0, 1}},
      .programs = {{Sum("x", 0), Sum("y", 1), Sum(kLong, 0, 1)},
                   {Sum("x", 0), Sum("y", 1), Sum(kLong, 0, 2)}}};
  ExpectNothingFound(options, 3);
  ModelWorld::Options broken = options;
  broken.blocks_with_backlog = true;
  EXPECT_NE(Explorer(broken, 3).Run(), "");
}

// The same for ranks that block although they have something left to relay.
// Ranks 1 and 2 come back from the batch of their own. 2 begins that with 0,
// whose arrival it knows of, and 1 that with 3; then 1 has not relayed that 2
// is there, nor 2 that 1 is.
TEST(ModelCheckTest, RelaysThatBlockBeforeTheyRelayAreFound) {
  const ModelWorld::Options options = ChainWhoseRelaysMeetFirst();
  ExpectNothingFound(options, 3);
  ModelWorld::Options broken = options;
  broken.hears_first = true;
  broken.blocks_before_relaying = true;
  EXPECT_NE(Explorer(broken, 1).Run(), "");
}

}  // namespace
}  // namespace hvdlite::negotiation

// Explores all orders of messages, submissions, calls of the data plane and one
// fault, within a bound. It runs the real Negotiator with its gates and its
// watch over the other ranks. No rank may wait for ever, all ranks must do the
// same, and all must end.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/testing/fakes/negotiation_requests.h"
#include "tests/testing/unless_sanitized.h"
#include "tests/testing/worlds/explorer.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::Action;
using hvdlite::testing::AddSet;
using hvdlite::testing::Explorer;
using hvdlite::testing::Scenario;

Request Sum(const std::string& name, ProcessSetId process_set,
            int64_t elements = 16) {
  return hvdlite::testing::Gradient(name, elements, process_set);
}

// This is longer than a ring.
const std::string kLong(300, 'z');

// Ranks 0 and 1 are on one host, 2 on another. Two sets overlap in rank 1; rank
// 0 relays for one of them. The messages of an operation of all ranks do not
// fit the rings.
Scenario ThreeRanks() {
  return {.host_of_rank = {0, 0, 1},
          .process_sets = {{0, 1}, {1, 2}},
          .programs = {{Sum("a", 1), Sum(kLong, 0)},
                       {Sum("b", 2), Sum("a", 1), Sum(kLong, 0)},
                       {Sum(kLong, 0), Sum("b", 2)}}};
}

// A chain 0 - 1 - 2 - 3, in which each of two sets relays through the other; in
// one of them, one bucket follows another.
Scenario Chain() {
  Request then = Sum("then", 2);
  then.prescale_factor = 2;  // not in one bucket with the previous one
  return {.host_of_rank = {0, 0, 0, 0},
          .tree_arity = 1,
          .process_sets = {{0, 2}, {1, 3}},
          .programs = {{Sum("a", 1)},
                       {Sum("b", 2), then},
                       {Sum("a", 1)},
                       {Sum("b", 2), then}}};
}

// The same chain, but the relays first have a bucket of their own, and then
// those in which each relays for the other.
Scenario ChainWhoseRelaysMeetFirst() {
  return {.host_of_rank = {0, 0, 0, 0},
          .tree_arity = 1,
          .process_sets = {{1, 2}, {1, 3}, {0, 2}},
          .programs = {{Sum("c", 3)},
                       {Sum("a", 1), Sum("b", 2)},
                       {Sum("a", 1), Sum("c", 3)},
                       {Sum("b", 2)}}};
}

// A longer chain: the relays of two consecutive buckets have a bucket of their
// own afterwards.
Scenario ChainWhoseRelaysMeetLast() {
  Request then = Sum("then", 1);
  then.prescale_factor = 2;
  return {.host_of_rank = {0, 0, 0, 0, 0},
          .tree_arity = 1,
          .hears_first = true,
          .process_sets = {{1, 4}, {2, 3}},
          .programs = {{},
                       {Sum("a", 1), then},
                       {Sum("b", 2)},
                       {Sum("b", 2)},
                       {Sum("a", 1), then}}};
}

// All ranks agree on a failure whose text does not fit the ring. Then they make
// a process set, which blocks.
Scenario LongFailure() {
  return {.host_of_rank = {0, 0},
          .programs = {{Sum(kLong, 0, 1), AddSet({0, 1})},
                       {Sum(kLong, 0, 2), AddSet({0, 1})}}};
}

// Ids are forgotten as soon as two others have been used, so also while ranks
// report by them.
Scenario IdsThatAreForgotten() {
  const auto scaled = [](const std::string& name, double by) {
    Request request = Sum(name, 0);
    request.prescale_factor = by;  // not in one bucket with the others
    return request;
  };
  const Request a = Sum("a", 0), b = scaled("b", 2), c = scaled("c", 3);
  return {.host_of_rank = {0, 0, 0},
          .tree_arity = 1,
          .run_before = {a, b, a, b},
          .max_idle_uses = 2,
          .programs = {{b, c, a}, {a, b, c}, {c, a, b}}};
}

constexpr int kFewerDeviations = hvdlite::testing::UnlessSanitized(0, 1);

void ExpectNothingFoundAroundUsualOrder(
    const Scenario& options, int deviations,
    std::optional<Action> fault = std::nullopt) {
  deviations = std::max(1, deviations - kFewerDeviations);
  Explorer explorer(options, deviations, fault);
  EXPECT_EQ(explorer.Run(), "");
  EXPECT_GT(explorer.paths(), 1);
  std::cout << explorer.paths() << " orders, " << explorer.states()
            << " states\n";
}

// Explores both usual orders; in one of them, leaves do not report that they
// wait. Under a sanitizer it explores one.
void ExpectNothingFound(Scenario options, int deviations,
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

TEST(ModelCheckTest, UncountedLeavesNeverDeadlock) {
  Scenario options = ThreeRanks();
  options.leaves_wait = false;
  ExpectNothingFoundAroundUsualOrder(options, 3);
}

TEST(ModelCheckTest, SetsThatRelayForOneAnotherNeverDeadlock) {
  ExpectNothingFound(Chain(), 3);
}

// This finds a deadlock if relays stay out of later calls only once they have
// received something to relay. Rank 3 blocks before it has received anything
// about the gate of "then", and waits for 2. Rank 2 knows of that gate, and
// waits for the arrival of 4, which 3 has to relay.
TEST(ModelCheckTest, RelaysWithoutNewsNeverDeadlock) {
  ExpectNothingFoundAroundUsualOrder(ChainWhoseRelaysMeetLast(), 3);
}

TEST(ModelCheckTest, MakingASetAfterALongMessageNeverDeadlocks) {
  ExpectNothingFound(LongFailure(), 5);
}

TEST(ModelCheckTest, IdsForgottenWhileRanksReportThemDoNoHarm) {
  ExpectNothingFound(IdsThatAreForgotten(), 3);
}

class ModelCheckFaultTest
    : public ::testing::TestWithParam<std::tuple<Action::Kind, int>> {};

TEST_P(ModelCheckFaultTest, AllOtherRanksEnd) {
  const auto [kind, rank] = GetParam();
  ExpectNothingFound(ThreeRanks(), 1, Action{kind, rank});
}

INSTANTIATE_TEST_SUITE_P(Faults, ModelCheckFaultTest,
                         ::testing::Combine(::testing::Values(Action::kCrash,
                                                              Action::kStop),
                                            ::testing::Values(0, 1, 2)));

// The search must find a deadlock if there is one: rank 0 enters the gate of
// the second bucket last, and sends this behind a text that does not fit the
// ring.
TEST(ModelCheckTest, FindsGateNewsThatABlockedRankHolds) {
  const Scenario options = {

      .host_of_rank = {0, 0},
      .process_sets = {{0, 1}},
      .programs = {{Sum("x", 0), Sum("y", 1), Sum(kLong, 0, 1)},
                   {Sum("x", 0), Sum("y", 1), Sum(kLong, 0, 2)}}};
  ExpectNothingFound(options, 3);
  Scenario broken = options;
  broken.blocks_with_backlog = true;
  EXPECT_NE(Explorer(broken, 3).Run(), "");
}

// The same for ranks that block although they have something left to relay.
// Ranks 1 and 2 leave their own bucket. Rank 2 starts the next one with 0,
// whose arrival it knows of, and 1 starts one with 3. Then 1 has not relayed
// that 2 has arrived, and 2 has not relayed that 1 has.
TEST(ModelCheckTest, FindsRelaysThatBlockBeforeTheyRelay) {
  const Scenario options = ChainWhoseRelaysMeetFirst();
  ExpectNothingFound(options, 3);
  Scenario broken = options;
  broken.hears_first = true;
  broken.blocks_before_relaying = true;
  EXPECT_NE(Explorer(broken, 1).Run(), "");
}

}  // namespace
}  // namespace hvdlite::negotiation

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/protocol/wire_format.h"

namespace hvdlite::negotiation {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kMillisecond = 1'000'000;

TensorSlot Registered(uint32_t id, int64_t bytes) {
  TensorSlot slot;
  slot.id = id;
  slot.request_bytes = bytes;
  slot.present = true;
  return slot;
}

std::vector<uint32_t> IdsOf(const NumberField& field) {
  std::vector<uint32_t> ids;
  EXPECT_TRUE(VisitIds(field, [&](uint32_t id) {
    ids.push_back(id);
    return true;
  }));
  return ids;
}

TEST(ReportDraftTest, IdsAreHeldBackUntilTheyAreWorthAReport) {
  ReportDraft draft(100);
  draft.AddReady(Registered(4, 60), 0);
  EXPECT_FALSE(draft.IsDue());
  EXPECT_EQ(draft.held_bytes(), 60);
  TensorSlot absent = Registered(9, 40);
  absent.present = false;
  draft.AddReady(absent, 0);
  EXPECT_TRUE(draft.IsDue());
  const wire::Report report = draft.Take(0);
  EXPECT_THAT(IdsOf(report.ready().ids()), ElementsAre(4));
  EXPECT_THAT(IdsOf(report.absent().ids()), ElementsAre(9));
  EXPECT_FALSE(draft.IsDue());
  EXPECT_EQ(draft.held_bytes(), 0);
  EXPECT_EQ(draft.Take(0).ByteSizeLong(), 0);
}

TEST(ReportDraftTest, WhatSomebodyWaitsForIsNotHeldBack) {
  ReportDraft draft(100);
  TensorSlot slot = Registered(4, 1);
  draft.AddReady(slot, 0);
  EXPECT_FALSE(draft.IsDue());
  draft.AddUrgent(slot);
  EXPECT_TRUE(draft.IsDue());
  const wire::Report report = draft.Take(0);
  EXPECT_THAT(IdsOf(report.ready().ids()), ElementsAre(4));
  EXPECT_THAT(IdsOf(report.urgent_ids()), ElementsAre(4));

  slot.urgent = true;
  draft.AddReady(slot, 0);
  EXPECT_TRUE(draft.IsDue());
}

TEST(ReportDraftTest, TensorsWithoutIdAndTheRestGoAtOnce) {
  ReportDraft draft(100);
  TensorSlot slot;
  slot.name = "x";
  slot.present = true;
  slot.urgent = true;
  Request request;
  request.name = "x";
  slot.variants.push_back({request, RankRuns({1, 2}), 0});
  draft.AddReady(slot, 0);
  EXPECT_TRUE(draft.IsDue());
  wire::Report report = draft.Take(0);
  ASSERT_EQ(report.announced_size(), 1);
  // All ranks below agree, and the parent knows which they are.
  EXPECT_FALSE(report.announced(0).has_ranks());
  EXPECT_THAT(report.urgent_names(), ElementsAre("x"));

  draft.rest().add_joined(3);
  EXPECT_TRUE(draft.IsDue());
  EXPECT_THAT(draft.Take(0).joined(), ElementsAre(3));
}

TEST(ReportDraftTest, AgesAreThoseOfTheMomentWhenTheReportGoes) {
  ReportDraft draft(100);
  TensorSlot slot = Registered(4, 1);
  slot.last_ns = 2 * kMillisecond;
  slot.last_rank = 7;
  draft.AddReady(slot, 3 * kMillisecond);
  const wire::Report report = draft.Take(12 * kMillisecond);
  ValueReader ages(report.ready().ages());
  uint32_t age = 0;
  ASSERT_TRUE(ages.Next(&age));
  EXPECT_EQ(TimeOfAge(12 * kMillisecond, age), slot.last_ns);
  ValueReader ranks(report.ready().last_ranks());
  uint32_t rank = 0;
  ASSERT_TRUE(ranks.Next(&rank));
  EXPECT_EQ(rank, 7);
}

TEST(ReportDraftTest, AgesStayWithinTheirRange) {
  EXPECT_EQ(AgeAt(0, 5 * kMillisecond), 0);  // the clock went back
  EXPECT_EQ(AgeAt(int64_t{1} << 62, 0), 0xffffffff);
}

}  // namespace
}  // namespace hvdlite::negotiation

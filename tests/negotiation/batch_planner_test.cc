#include "negotiation/batch_planner.h"

#include <deque>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvdlite::negotiation {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BatchPlannerTest : public ::testing::Test {
 protected:
  TensorSlot& Add(const std::string& name, int64_t bytes, bool urgent = false,
                  collective::DataType dtype = collective::DataType::kUint8) {
    TensorSlot& slot = slots_.emplace_back();
    slot.name = name;
    slot.present = true;
    slot.urgent = urgent;
    Request request;
    request.name = name;
    request.dtype = dtype;
    request.shape = {bytes};
    planner_.Add(slot, request);
    return slot;
  }

  TensorSlot& AddAbsent(const std::string& name, bool urgent = false) {
    TensorSlot& slot = slots_.emplace_back();
    slot.name = name;
    slot.urgent = urgent;
    planner_.Add(slot, {});
    return slot;
  }

  // Names of the next batch, absent ones with a minus; empty: none starts.
  std::vector<std::string> Next() {
    std::vector<std::string> names;
    const auto batch = planner_.Next();
    if (!batch.has_value()) return names;
    for (const TensorSlot* slot : batch->tensors) names.push_back(slot->name);
    for (const TensorSlot* slot : batch->absent) {
      names.push_back("-" + slot->name);
    }
    return names;
  }

  std::deque<TensorSlot> slots_;
  BatchPlanner planner_{/*fusion_threshold_bytes=*/100, /*min_batch_bytes=*/40};
};

TEST_F(BatchPlannerTest, SmallTensorsGatherUntilThereAreEnough) {
  Add("a", 39);
  EXPECT_THAT(Next(), IsEmpty());
  Add("b", 1);
  EXPECT_THAT(Next(), ElementsAre("a", "b"));
  EXPECT_TRUE(planner_.empty());
}

TEST_F(BatchPlannerTest, UrgentTensorTakesAllOfItsKindAlong) {
  Add("a", 1);
  Add("b", 1, /*urgent=*/true);
  Add("other dtype", 1, false, collective::DataType::kInt8);
  EXPECT_THAT(Next(), ElementsAre("a", "b"));
  EXPECT_THAT(Next(), IsEmpty());
}

TEST_F(BatchPlannerTest, BatchEndsAtTheFusionThreshold) {
  for (const char* name : {"a", "b", "c"}) Add(name, 50);
  EXPECT_THAT(Next(), ElementsAre("a", "b"));
  EXPECT_THAT(Next(), ElementsAre("c"));
}

TEST_F(BatchPlannerTest, TensorAboveTheThresholdGoesAlone) {
  Add("huge", 1000);
  Add("a", 50);
  EXPECT_THAT(Next(), ElementsAre("huge"));
  EXPECT_THAT(Next(), ElementsAre("a"));
}

TEST_F(BatchPlannerTest, UrgentTensorBehindTheThresholdComesNext) {
  Add("a", 90);
  TensorSlot& late = Add("late", 20);
  planner_.MarkUrgent(late);
  planner_.MarkUrgent(late);  // again, which must not count twice
  EXPECT_THAT(Next(), ElementsAre("a"));
  EXPECT_THAT(Next(), ElementsAre("late"));
  Add("small", 1);
  EXPECT_THAT(Next(), IsEmpty());
}

TEST_F(BatchPlannerTest, GroupSomebodyWaitsForComesBeforeAnOlderOne) {
  Add("old", 60);
  Add("awaited", 1, /*urgent=*/true, collective::DataType::kInt8);
  EXPECT_THAT(Next(), ElementsAre("awaited"));
  EXPECT_THAT(Next(), ElementsAre("old"));
}

TEST_F(BatchPlannerTest, AbsentTensorsGoAlongOrWhenAwaited) {
  TensorSlot& absent = AddAbsent("x");
  EXPECT_THAT(Next(), IsEmpty());
  Add("a", 50);
  EXPECT_THAT(Next(), ElementsAre("a", "-x"));
  AddAbsent("y");
  planner_.MarkUrgent(slots_.back());
  EXPECT_THAT(Next(), ElementsAre("-y"));
  EXPECT_FALSE(absent.urgent);
}

TEST_F(BatchPlannerTest, FlushStartsEverything) {
  Add("a", 1);
  AddAbsent("x");
  planner_.Flush();
  EXPECT_THAT(Next(), ElementsAre("a", "-x"));
  EXPECT_THAT(Next(), IsEmpty());
}

}  // namespace
}  // namespace hvdlite::negotiation

#include "negotiation/protocol/decision_maker.h"

#include <deque>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvdlite::negotiation {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BucketPlannerTest : public ::testing::Test {
 protected:
  static constexpr ProcessSetId kWithoutRoot = 2;

  TensorSlot& Add(const std::string& name, int64_t bytes, bool urgent = false,
                  Collective collective = Collective::kAllreduce,
                  ProcessSetId process_set = 0) {
    TensorSlot& slot = slots_.emplace_back();
    slot.name = name;
    slot.present = true;
    slot.urgent = urgent;
    Request request;
    request.name = name;
    request.process_set = process_set;
    request.collective = collective;
    request.tensors = {{.shape = {bytes}}};
    request.tensors[0].dtype = collective::DataType::kUint8;
    slot.process_set = process_set;
    planner_.Add(slot, request, /*with_root=*/process_set != kWithoutRoot);
    return slot;
  }

  TensorSlot& AddAbsent(const std::string& name, bool urgent = false,
                        ProcessSetId process_set = 0) {
    TensorSlot& slot = slots_.emplace_back();
    slot.name = name;
    slot.urgent = urgent;
    slot.process_set = process_set;
    planner_.Add(slot, {}, /*with_root=*/process_set != kWithoutRoot);
    return slot;
  }

  // Returns the names of the next bucket, absent ones with a minus; empty if
  // none starts.
  std::vector<std::string> Next(bool root_is_idle = true) {
    std::vector<std::string> names;
    const auto bucket = planner_.Next(root_is_idle);
    if (!bucket.has_value()) return names;
    for (const TensorSlot* slot : bucket->tensors) names.push_back(slot->name);
    for (const TensorSlot* slot : bucket->absent) {
      names.push_back("-" + slot->name);
    }
    return names;
  }

  std::deque<TensorSlot> slots_;
  BucketPlanner planner_{/*fusion_threshold_bytes=*/100,
                         /*min_batch_bytes=*/40};
};

TEST_F(BucketPlannerTest, SmallTensorsGatherUpToTheMinimum) {
  Add("a", 39);
  EXPECT_THAT(Next(), IsEmpty());
  Add("b", 1);
  EXPECT_THAT(Next(), ElementsAre("a", "b"));
  EXPECT_TRUE(planner_.empty());
}

TEST_F(BucketPlannerTest, UrgentTensorTakesItsWholeGroup) {
  Add("a", 1);
  Add("b", 1, /*urgent=*/true);
  Add("other kind", 1, false, Collective::kBroadcast);
  Add("other set", 1, false, Collective::kAllreduce, /*process_set=*/1);
  EXPECT_THAT(Next(), ElementsAre("a", "b"));
  EXPECT_THAT(Next(), IsEmpty());
}

TEST_F(BucketPlannerTest, BucketEndsAtTheFusionThreshold) {
  for (const char* name : {"a", "b", "c"}) Add(name, 50);
  EXPECT_THAT(Next(), ElementsAre("a", "b"));
  EXPECT_THAT(Next(), ElementsAre("c"));
}

TEST_F(BucketPlannerTest, TensorAboveTheThresholdIsABucketOfItsOwn) {
  Add("huge", 1000);
  Add("a", 50);
  EXPECT_THAT(Next(), ElementsAre("huge"));
  EXPECT_THAT(Next(), ElementsAre("a"));
}

TEST_F(BucketPlannerTest, UrgentTensorBehindTheThresholdComesNext) {
  Add("a", 90);
  TensorSlot& late = Add("late", 20);
  planner_.MarkUrgent(late);
  planner_.MarkUrgent(late);  // the second mark must not count
  EXPECT_THAT(Next(), ElementsAre("a"));
  EXPECT_THAT(Next(), ElementsAre("late"));
  Add("small", 1);
  EXPECT_THAT(Next(), IsEmpty());
}

TEST_F(BucketPlannerTest, AwaitedGroupComesBeforeAnOlderOne) {
  Add("old", 60);
  Add("awaited", 1, /*urgent=*/true, Collective::kBroadcast);
  EXPECT_THAT(Next(), ElementsAre("awaited"));
  EXPECT_THAT(Next(), ElementsAre("old"));
}

TEST_F(BucketPlannerTest, AbsentTensorsEndWithABucketOrWhenAwaited) {
  TensorSlot& absent = AddAbsent("x");
  EXPECT_THAT(Next(), IsEmpty());
  Add("a", 50);
  EXPECT_THAT(Next(), ElementsAre("a", "-x"));
  AddAbsent("y");
  planner_.MarkUrgent(slots_.back());
  EXPECT_THAT(Next(), ElementsAre("-y"));
  EXPECT_FALSE(absent.urgent);
}

TEST_F(BucketPlannerTest, FlushStartsEverything) {
  Add("a", 1);
  AddAbsent("x");
  planner_.Flush();
  EXPECT_THAT(Next(), ElementsAre("a", "-x"));
  EXPECT_THAT(Next(), IsEmpty());
}

TEST_F(BucketPlannerTest, WhileTheRootIsBusyOnlySetsWithoutItStart) {
  Add("world", 50);
  Add("with root", 50, false, Collective::kAllreduce, /*process_set=*/1);
  Add("without root", 50, false, Collective::kAllreduce, kWithoutRoot);
  AddAbsent("x", /*urgent=*/true, kWithoutRoot);
  AddAbsent("y", /*urgent=*/true);
  EXPECT_THAT(Next(/*root_is_idle=*/false), ElementsAre("without root", "-x"));
  AddAbsent("z", /*urgent=*/true, kWithoutRoot);
  EXPECT_THAT(Next(/*root_is_idle=*/false), ElementsAre("-z"));
  EXPECT_THAT(Next(/*root_is_idle=*/false), IsEmpty());
  EXPECT_THAT(Next(), ElementsAre("world", "-y"));
  EXPECT_THAT(Next(), ElementsAre("with root"));
}

TEST_F(BucketPlannerTest, FlushOfOneProcessSetDoesNotAffectOthers) {
  Add("world", 1);
  Add("of the set", 1, false, Collective::kAllreduce, /*process_set=*/1);
  AddAbsent("x", false, /*process_set=*/1);
  AddAbsent("y");
  planner_.Flush(/*process_set=*/1);
  EXPECT_TRUE(planner_.holds(1));
  EXPECT_THAT(Next(), ElementsAre("of the set", "-x"));
  EXPECT_FALSE(planner_.holds(1));
  EXPECT_TRUE(planner_.holds(0));
  EXPECT_THAT(Next(), IsEmpty());
}

TEST_F(BucketPlannerTest, OperationsOfUnknownSizeStartImmediately) {
  Add("gathered", 1, false, Collective::kAllgather);
  EXPECT_THAT(Next(), ElementsAre("gathered"));
}

}  // namespace
}  // namespace hvdlite::negotiation

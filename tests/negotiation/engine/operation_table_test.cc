#include "negotiation/engine/operation_table.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "tests/testing/fakes/kept_events.h"

namespace hvdlite::negotiation {
namespace {

constexpr int64_t kMinBatchBytes = 1000;

// When submissions wake the background thread.
class WorthWakingTest : public ::testing::Test {
 protected:
  Operation Sum(const std::string& name, size_t bytes) {
    const auto values = std::make_shared<std::vector<std::byte>>(bytes);
    Operation operation;
    operation.request.name = name;
    operation.request.tensors = {{.shape = {static_cast<int64_t>(bytes / 4)}}};
    operation.inputs = {*values};
    operation.outputs = {absl::MakeSpan(*values)};
    operation.keep_alive = values;
    return operation;
  }

  bool WakesFor(Operation operation) {
    bool worth_waking = false;
    const auto completion = table_.Submit(std::move(operation), &worth_waking);
    EXPECT_TRUE(completion.ok()) << completion.status();
    return worth_waking;
  }

  void TakeInputs(bool awaited, int64_t coalesced_bytes) {
    OperationTable::Inputs inputs;
    table_.TakeInputs(inputs, awaited, coalesced_bytes);
  }

  base::SteadyClock clock_;
  OperationTable table_{/*rank=*/0, /*world_size=*/2, kMinBatchBytes, clock_};
};

TEST_F(WorthWakingTest, SmallSubmissionsGather) {
  EXPECT_FALSE(WakesFor(Sum("a", 600)));
  EXPECT_TRUE(table_.MayGather());
  EXPECT_TRUE(WakesFor(Sum("b", 400)));
  EXPECT_FALSE(table_.MayGather());
  TakeInputs(/*awaited=*/false, /*coalesced_bytes=*/0);
  EXPECT_FALSE(WakesFor(Sum("c", 600)));
}

TEST_F(WorthWakingTest, CoalescedBytesCount) {
  TakeInputs(/*awaited=*/false, /*coalesced_bytes=*/600);
  EXPECT_TRUE(WakesFor(Sum("a", 400)));
}

TEST_F(WorthWakingTest, AwaitedSubmissionsDoNotGather) {
  TakeInputs(/*awaited=*/true, /*coalesced_bytes=*/0);
  EXPECT_TRUE(WakesFor(Sum("a", 4)));
  EXPECT_TRUE(table_.MayGather());
  TakeInputs(/*awaited=*/false, /*coalesced_bytes=*/0);
  EXPECT_FALSE(WakesFor(Sum("b", 4)));
}

TEST_F(WorthWakingTest, WaitingOrLeavingEndsGathering) {
  bool worth_waking = false;
  const auto pending = table_.Submit(Sum("a", 4), &worth_waking);
  ASSERT_TRUE(pending.ok());
  EXPECT_TRUE(table_.MayGather());
  table_.MarkUrgent(**pending);
  EXPECT_FALSE(table_.MayGather());
  TakeInputs(/*awaited=*/true, /*coalesced_bytes=*/0);
  EXPECT_TRUE(WakesFor(Sum("b", 4)));
  table_.Leave("training has ended");
  EXPECT_FALSE(table_.MayGather());
}

TEST_F(WorthWakingTest, UnknownNumbersOfRowsDoNotGather) {
  std::vector<std::byte> row(4);
  Operation gather = Sum("a", 4);
  gather.request.collective = Collective::kAllgather;
  gather.request.tensors = {{.shape = {kAnyLength}}};
  gather.rows = {1};
  gather.outputs.clear();
  gather.allocate = [](const RowsByMember&) -> absl::StatusOr<Outputs> {
    return absl::InternalError("it is never run");
  };
  EXPECT_TRUE(WakesFor(std::move(gather)));
}

TEST_F(WorthWakingTest, ProcessSetOperationsDoNotGather) {
  Operation add;
  add.request.name = "add";
  add.request.collective = Collective::kAddProcessSet;
  add.request.members = {0, 1};
  EXPECT_TRUE(WakesFor(std::move(add)));
}

TEST_F(WorthWakingTest, FailedSubmissionDoesNotCount) {
  const PersistentPtr large =
      table_.MakePersistent(Sum("large", 900), Owner::kOne).value();
  bool worth_waking = false;
  ASSERT_FALSE(table_.SubmitPersistent({large, large}, &worth_waking).ok());
  EXPECT_FALSE(worth_waking);
  EXPECT_FALSE(WakesFor(Sum("a", 600)));
  EXPECT_TRUE(WakesFor(Sum("b", 400)));
}

TEST_F(WorthWakingTest, QueuedSubmissionCountsOnceItsPredecessorHasEnded) {
  EXPECT_FALSE(WakesFor(Sum("a", 600)));
  OperationTable::Inputs inputs;
  table_.TakeInputs(inputs, /*awaited=*/false, /*coalesced_bytes=*/0);
  ASSERT_EQ(inputs.submitted.size(), 1u);
  const std::vector<SubmittedPtr> first = inputs.submitted;
  EXPECT_FALSE(WakesFor(Sum("a", 1000)));
  EXPECT_FALSE(WakesFor(Sum("a", 100)));
  EXPECT_FALSE(table_.IsWorthWaking());
  table_.Complete(first, absl::OkStatus());
  EXPECT_TRUE(table_.IsWorthWaking());
  table_.TakeInputs(inputs, /*awaited=*/false, /*coalesced_bytes=*/0);
  ASSERT_EQ(inputs.submitted.size(), 1u);
  const std::vector<SubmittedPtr> second = inputs.submitted;
  EXPECT_EQ(second[0]->operation.request.size_bytes(), 1000);
  EXPECT_FALSE(table_.IsWorthWaking());
  table_.Complete(second, absl::OkStatus());
  EXPECT_FALSE(table_.IsWorthWaking());  // it is small
}

// Operations are in flight from submission to completion.
TEST_F(WorthWakingTest, OperationsInFlightAreRecordedAsACounter) {
  table_.RecordInFlight();  // there is no recorder
  const auto recorder = std::make_shared<timeline::KeptEvents>();
  table_.set_recorder(recorder);
  WakesFor(Sum("a", 600));
  WakesFor(Sum("b", 400));
  table_.RecordInFlight();
  OperationTable::Inputs inputs;
  table_.TakeInputs(inputs, /*awaited=*/true, /*coalesced_bytes=*/0);
  table_.Complete({inputs.submitted[0]}, absl::OkStatus());
  table_.RecordInFlight();
  ASSERT_EQ(recorder->events.size(), 2u);
  EXPECT_EQ(recorder->events[0].name, "IN_FLIGHT");
  EXPECT_EQ(timeline::NumberOf(recorder->events[0].args, "operations", -1), 2);
  EXPECT_EQ(timeline::NumberOf(recorder->events[0].args, "bytes", -1), 1000);
  EXPECT_EQ(timeline::NumberOf(recorder->events[1].args, "operations", -1), 1);
  EXPECT_EQ(timeline::NumberOf(recorder->events[1].args, "bytes", -1), 400);
}

// The submitting rank refuses these immediately.
TEST(RefusalTest, InvalidOperationsAreRefused) {
  const base::SteadyClock clock;
  OperationTable table(/*rank=*/0, /*world_size=*/2, kMinBatchBytes, clock);
  std::vector<std::byte> memory(64);
  struct Case {
    const char* what;
    Collective collective;
    std::vector<TensorSpec> tensors;
    void (*change)(Operation&) = nullptr;  // makes it invalid
  };
  const TensorSpec two = {.shape = {2}};
  const TensorSpec rows = {.shape = {kAnyLength}};
  const TensorSpec of_complex = {collective::DataType::kComplex64, {2}};
  const auto make = [&](const Case& one) {
    Operation operation;
    Request& request = operation.request;
    request.name = "x";
    request.collective = one.collective;
    request.tensors.assign(one.tensors.begin(), one.tensors.end());
    for (const TensorSpec& tensor : one.tensors) {
      const size_t bytes =
          request.rows_differ() ? 0 : static_cast<size_t>(SizeBytes(tensor));
      operation.inputs.push_back(absl::MakeSpan(memory).first(bytes));
      if (request.rows_differ()) continue;
      const bool shared = request.collective == Collective::kReducescatter;
      operation.outputs.push_back(
          absl::MakeSpan(memory).first(shared ? bytes / 2 : bytes));
    }
    if (request.rows_differ()) {
      operation.rows.assign(request.collective == Collective::kAlltoall ? 2 : 1,
                            0);
      operation.allocate = [](const RowsByMember&) { return Outputs(); };
    }
    return operation;
  };
  const auto submit = [&](Operation operation) {
    bool worth_waking = false;
    return table.Submit(std::move(operation), &worth_waking).status();
  };
  for (const Case& one : std::vector<Case>{
           {"two tensors", Collective::kAlltoall, {rows, rows}},
           {"Adasum of complex numbers", Collective::kAdasum, {of_complex}},
           {"no process set", Collective::kRemoveProcessSet, {}},
           {"fewer rows than none",
            Collective::kAllgather,
            {rows},
            [](Operation& o) { o.rows = {-1}; }},
           {"nowhere for the rows",
            Collective::kAllgather,
            {rows},
            [](Operation& o) { o.allocate = nullptr; }},
           {"a root without a tensor",
            Collective::kBroadcast,
            {two},
            [](Operation& o) { o.absent = true; }},
           {"a root beyond the world",
            Collective::kBroadcast,
            {two},
            [](Operation& o) { o.request.root_rank = 2; }},
           {"no output",
            Collective::kAllreduce,
            {two},
            [](Operation& o) { o.outputs.clear(); }},
           {"no rows to scatter",
            Collective::kReducescatter,
            {two},
            [](Operation& o) { o.request.tensors[0].shape.clear(); }},
           {"the largest of complex numbers",
            Collective::kAllreduce,
            {of_complex},
            [](Operation& o) { o.request.op = collective::ReduceOp::kMax; }},
           {"a set that this rank is not in",
            Collective::kAllreduce,
            {two},
            [](Operation& o) { o.request.process_set = 3; }},
           {"no name", Collective::kAllreduce, {two}, [](Operation& o) {
              o.request.name.clear();
            }}}) {
    SCOPED_TRACE(one.what);
    Operation operation = make(one);
    if (one.change != nullptr) {
      EXPECT_EQ(submit(make(one)), absl::OkStatus());
      one.change(operation);
    }
    EXPECT_EQ(submit(std::move(operation)).code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace hvdlite::negotiation

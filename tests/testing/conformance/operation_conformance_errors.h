// The errors of operations, which leave the world healthy; and joins. Part of
// operation_conformance.h.
#pragma once

#include "tests/testing/conformance/operation_conformance_rank.h"

namespace hvdlite::testing {

TEST_P(OperationConformance, RanksThatDisagreeGetTheSameErrorAndGoOn) {
  Run([](ConformanceRank& rank) {
    if (rank.size() == 1) return;
    struct Disagreement {
      Collective collective;
      void (*change)(Request&);
      const char* text;
    };
    const Disagreement disagreements[] = {
        {Collective::kAllreduce,
         [](Request& r) { r.tensors[0].dtype = DataType::kInt32; },
         "the dtype"},
        {Collective::kAllreduce,
         [](Request& r) {
           r.tensors[0].shape = {3, 1};
         },
         "the shape"},
        {Collective::kAllreduce, [](Request& r) { r.op = ReduceOp::kMax; },
         "the op"},
        {Collective::kAllreduce, [](Request& r) { r.average = true; },
         "the op"},
        {Collective::kAllreduce,
         [](Request& r) { r.collective = Collective::kBroadcast; },
         "the operation"},
        {Collective::kAllreduce,
         [](Request& r) { r.compression = collective::Compression::kBFloat16; },
         "the compression"},
        {Collective::kAllreduce, [](Request& r) { r.prescale_factor = 3; },
         "the prescale factor"},
        {Collective::kAllreduce, [](Request& r) { r.postscale_factor = 3; },
         "the postscale factor"},
        {Collective::kBroadcast, [](Request& r) { r.root_rank = 1; },
         "the root rank"},
        {Collective::kAllgather,
         [](Request& r) {
           r.tensors[0].shape = {kAnyLength, 1};
         },
         "the shape"},
        {Collective::kAlltoall,
         [](Request& r) { r.tensors[0].dtype = DataType::kInt32; },
         "the dtype"},
        {Collective::kReducescatter,
         [](Request& r) {
           r.tensors[0].shape = {3, 1};
         },
         "the shape"},
        {Collective::kReducescatter,
         [](Request& r) { r.local_error = "it is tired"; }, "it is tired"},
        {Collective::kBarrier,
         [](Request& r) { r.local_error = "it is tired"; }, "it is tired"},
    };
    for (const Disagreement& disagreement : disagreements) {
      for (int other = 0; other < rank.size(); other += rank.size() - 1) {
        const bool rows = disagreement.collective == Collective::kAllgather ||
                          disagreement.collective == Collective::kAlltoall;
        std::vector<TensorSpec> tensors = {
            {DataType::kFloat32, {rows ? kAnyLength : 3}}};
        if (disagreement.collective == Collective::kBarrier) tensors.clear();
        OperationCase spec = rank.Case(disagreement.collective, tensors);
        spec.request.name = "disagreement";  // again and again
        rank.CheckFails(
            spec,
            [&](Operation& operation) {
              if (rank.rank() == other) disagreement.change(operation.request);
            },
            disagreement.text);
      }
    }
    OperationCase group =
        rank.Case(Collective::kAllreduce,
                  {{DataType::kFloat32, {3}}, {DataType::kFloat32, {4}}});
    rank.CheckFails(
        group,
        [&](Operation& operation) {
          if (rank.rank() != 0) return;
          operation.request.tensors.pop_back();
          operation.inputs.pop_back();
          operation.outputs.pop_back();
        },
        "the number of tensors");
    rank.CheckFails(
        rank.Case(Collective::kAddProcessSet, {}),
        [&](Operation& operation) {
          operation.request.members = {rank.rank() == 0 ? 0 : 1};
        },
        "the ranks of");
  });
}

TEST_P(OperationConformance, NameFailsInOneProcessSetAndIsUsedInAnother) {
  Run([](ConformanceRank& rank) {
    if (rank.size() == 1) return;
    // Rank 0, the root, is last to submit it: it has heard from all others.
    const auto everywhere = [&] {
      OperationCase spec = rank.Case(Collective::kAllreduce, {{.shape = {4}}});
      spec.request.name = "x";
      const OperationCase barrier = rank.Case(Collective::kBarrier, {});
      if (rank.rank() != 0) rank.Start(spec);
      rank.Start(barrier);
      if (rank.rank() == 0) {
        rank.Finish();
        rank.Start(spec);
      }
      rank.Finish();
    };
    // Registered for the world.
    for (int i = 0; i < 3; ++i) everywhere();
    const std::vector<int> members = {rank.size() - 2, rank.size() - 1};
    const ProcessSetId set = rank.Add(members);
    OperationCase spec = rank.Case(Collective::kAllreduce, {{.shape = {4}}});
    spec.request.name = "x";
    spec.request.process_set = set;
    spec.members = members;
    OperationRun run(spec, rank.rank(), "x");
    if (spec.TakesPart(rank.rank())) {
      Operation operation = run.MakeOperation();
      if (rank.rank() == members[0]) operation.request.local_error = "no";
      EXPECT_FALSE(rank.Status(std::move(operation)).ok());
    }
    rank.Check(rank.Case(Collective::kBarrier, {}));
    everywhere();
    EXPECT_TRUE(rank.Status(rank.RemoveOperation(set)).ok());
    everywhere();
  });
}

TEST_P(OperationConformance, RemovalFailsWhatIsPendingInTheSet) {
  Run([](ConformanceRank& rank) {
    const ProcessSetId set = rank.Add(rank.World());
    OperationCase spec = rank.Case(Collective::kAllreduce, {{.shape = {4}}});
    spec.request.process_set = set;
    OperationRun pending(spec, rank.rank(), "pending");
    OperationRun late(spec, rank.rank(), "late");
    std::shared_ptr<const negotiation::Completion> completion;
    if (rank.size() > 1 && rank.rank() > 0) {
      completion = *rank.coordinator().Submit(pending.MakeOperation());
    }
    EXPECT_TRUE(rank.Status(rank.RemoveOperation(set)).ok());
    if (completion != nullptr) {
      rank.coordinator().Wait(*completion).IgnoreError();
      pending.CheckFailed(*completion, "has been removed");
    }
    const absl::Status status = rank.Status(late.MakeOperation());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    rank.CheckSameError(rank.Status(rank.RemoveOperation(set)),
                        "has been removed before");
    rank.CheckHealthy();
  });
}

TEST_P(OperationConformance, RankOutsideOfASetCannotUseIt) {
  Run([](ConformanceRank& rank) {
    const ProcessSetId set = rank.Add({0});
    OperationCase spec = rank.Case(Collective::kAllreduce, {{.shape = {4}}});
    spec.request.process_set = set;
    spec.members = {0};
    if (rank.rank() != 0) {
      OperationRun run(spec, rank.rank(), "outside");
      const absl::Status status = rank.Status(run.MakeOperation());
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    }
    rank.Check(spec);
    rank.CheckHealthy();
  });
}

TEST_P(OperationConformance, OperationsThatMakeNoSenseAreRefusedAtOnce) {
  Run([](ConformanceRank& rank) {
    const auto check = [&](Collective collective,
                           const std::vector<TensorSpec>& tensors,
                           const std::function<void(Operation&)>& change) {
      OperationRun run(rank.Case(collective, tensors), rank.rank(), "");
      Operation operation = run.MakeOperation();
      change(operation);
      const absl::Status status =
          rank.coordinator().Submit(std::move(operation)).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    };
    const auto nothing = [](Operation&) {};
    const TensorSpec rows = {DataType::kFloat32, {kAnyLength}};
    check(Collective::kAlltoall, {rows, rows}, nothing);
    check(Collective::kAllgather, {{DataType::kFloat32, {kAnyLength, 0}}},
          [](Operation& operation) { operation.rows = {-1}; });
    check(Collective::kAllgather, {rows},
          [](Operation& operation) { operation.allocate = nullptr; });
    check(Collective::kBroadcast, {{.shape = {2}}},
          [](Operation& operation) { operation.absent = true; });
    check(Collective::kBroadcast, {{.shape = {2}}}, [&](Operation& operation) {
      operation.request.root_rank = rank.size();
    });
    check(Collective::kAllreduce, {{.shape = {2}}},
          [](Operation& operation) { operation.outputs.clear(); });
    check(Collective::kReducescatter, {{.shape = {2}}},
          [](Operation& operation) {
            operation.request.tensors[0].shape.clear();
          });
    check(Collective::kAllreduce, {{DataType::kComplex64, {2}}},
          [](Operation& operation) { operation.request.op = ReduceOp::kMax; });
    check(Collective::kAdasum, {{DataType::kComplex64, {2}}}, nothing);
    check(Collective::kRemoveProcessSet, {}, nothing);
    rank.CheckHealthy();
  });
}

TEST_P(OperationConformance, JoinedRanksTakePartWithNothing) {
  Run([](ConformanceRank& rank) {
    for (int round = 0; round < 3; ++round) {
      // Rank r joins after r times two operations.
      for (int i = 0; i < 2 * (rank.size() - 1); ++i) {
        OperationCase spec = rank.Case(
            i % 2 == 0 ? Collective::kAllreduce : Collective::kAllgather,
            {{DataType::kFloat32, {i % 2 == 0 ? 300 : kAnyLength}}});
        spec.request.name = absl::StrCat("joined ", i);
        spec.request.average = i % 2 == 0;
        for (int r = 0; 2 * r <= i; ++r) spec.joined.push_back(r);
        rank.Start(spec);
      }
      // Nobody waits for what is pending but the join.
      const int64_t last = rank.Join();
      for (const std::string& other : rank.Texts(absl::StrCat(last))) {
        EXPECT_EQ(other, absl::StrCat(last));
      }
      rank.Finish();
    }
  });
}

TEST_P(OperationConformance, WhatNeedsAJoinedRankFailsOnTheOthers) {
  Run([](ConformanceRank& rank) {
    const int joined = rank.size() - 1;
    const Collective collectives[] = {
        Collective::kAlltoall, Collective::kReducescatter,
        Collective::kBroadcast, Collective::kAddProcessSet};
    for (const Collective collective : collectives) {
      std::vector<TensorSpec> tensors = {
          {DataType::kFloat32,
           {collective == Collective::kAlltoall ? kAnyLength : 4}}};
      if (collective == Collective::kAddProcessSet) tensors.clear();
      OperationCase spec = rank.Case(collective, tensors);
      spec.request.root_rank = joined;
      spec.request.members = collective == Collective::kAddProcessSet
                                 ? std::vector<int>{0}
                                 : std::vector<int>{};
      std::string message;
      if (rank.rank() != joined) {
        OperationRun run(spec, rank.rank(), "needs all");
        const absl::Status status = rank.Status(run.MakeOperation());
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
        message = std::string(status.message());
        EXPECT_TRUE(absl::StrContains(message, "joined")) << message;
      }
      rank.Join();
      const std::vector<std::string> messages = rank.Texts(message);
      for (int r = 0; r < joined; ++r) EXPECT_EQ(messages[r], messages[0]);
    }
    rank.CheckHealthy();
  });
}

}  // namespace hvdlite::testing

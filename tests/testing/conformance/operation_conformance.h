// What whole operations of a world of coordinators must do, over any backend. A
// test includes this once and instantiates the suite OperationConformance.
#pragma once

#include "tests/testing/conformance/operation_conformance_errors.h"
#include "tests/testing/conformance/operation_conformance_rank.h"

namespace hvdlite::testing {

inline std::vector<TensorSpec> Rows(DataType dtype) {
  return {{dtype, {kAnyLength, 3}}};
}

inline const DataType kFloatTypes[] = {DataType::kFloat32, DataType::kFloat64,
                                       DataType::kFloat16, DataType::kBFloat16};

TEST_P(OperationConformance, ReductionsOfEveryTypeAndOpAreRight) {
  Run([](ConformanceRank& rank) {
    for (const auto collective :
         {Collective::kAllreduce, Collective::kReducescatter}) {
      for (const DataType dtype : DataTypesToTry()) {
        for (const ReduceOp op : ReduceOpsOf(dtype)) {
          OperationCase spec = rank.Case(collective, {{dtype, {7, 11}}});
          spec.request.op = op;
          rank.Start(spec);
          spec = rank.Case(collective, {{dtype, {5}}});
          spec.request.op = op;
          spec.request.prescale_factor = 0.5;
          spec.request.postscale_factor = 2;
          rank.Start(spec);
        }
        rank.Finish();
      }
    }
  });
}

TEST_P(OperationConformance, AveragesAndCompressionOfEveryTypeAreRight) {
  Run([](ConformanceRank& rank) {
    for (const auto collective :
         {Collective::kAllreduce, Collective::kReducescatter}) {
      for (const DataType dtype : DataTypesToTry()) {
        for (int kind = 0; kind < 2 * collective::kNumCompressions; ++kind) {
          OperationCase spec = rank.Case(collective, {{dtype, {401, 2}}});
          spec.request.compression =
              static_cast<collective::Compression>(kind / 2);
          spec.request.average = kind % 2 == 1;
          rank.Start(spec);
        }
        rank.Finish();
      }
    }
  });
}

TEST_P(OperationConformance, AdasumOfEveryFloatTypeIsRight) {
  Run([](ConformanceRank& rank) {
    for (const DataType dtype : kFloatTypes) {
      for (int kind = 0; kind < collective::kNumCompressions; ++kind) {
        OperationCase spec =
            rank.Case(Collective::kAdasum, {{dtype, {700}}, {dtype, {}}});
        spec.request.compression = static_cast<collective::Compression>(kind);
        rank.Start(spec);
        spec.request.name += " absent";
        spec.absent = {0};
        rank.Start(spec);
      }
    }
    rank.Finish();
  });
}

TEST_P(OperationConformance, RowsOfEveryTypeArriveInRankOrder) {
  Run([](ConformanceRank& rank) {
    for (const auto collective :
         {Collective::kAllgather, Collective::kAlltoall}) {
      for (const DataType dtype : DataTypesToTry()) {
        for (const int64_t max_rows : {0, 1, 5, 100}) {
          OperationCase spec = rank.Case(collective, Rows(dtype));
          spec.max_rows = max_rows;
          rank.Start(spec);
          spec = rank.Case(collective, {{dtype, {kAnyLength}}});
          spec.max_rows = max_rows;
          rank.Start(spec);
          rank.Start(rank.Case(collective, {{dtype, {kAnyLength, 0}}}));
        }
      }
      rank.Finish();
    }
  });
}

TEST_P(OperationConformance, EveryRankCanBeTheRootOfEveryType) {
  Run([](ConformanceRank& rank) {
    for (int root = 0; root < rank.size(); ++root) {
      for (const DataType dtype : DataTypesToTry()) {
        OperationCase spec =
            rank.Case(Collective::kBroadcast, {{dtype, {301}}, {dtype, {}}});
        spec.request.root_rank = root;
        rank.Start(spec);
      }
    }
    rank.Finish();
  });
}

TEST_P(OperationConformance, ShapesOfAllKindsGoThroughEveryCollective) {
  Run([](ConformanceRank& rank) {
    const std::vector<std::vector<int64_t>> shapes = {
        {}, {0}, {1}, {0, 4}, {4, 0}, {2, 3, 5}, {9999}, {1000, 3}};
    for (const auto collective :
         {Collective::kAllreduce, Collective::kAdasum, Collective::kBroadcast,
          Collective::kReducescatter}) {
      for (const auto& shape : shapes) {
        if (shape.empty() && collective == Collective::kReducescatter) continue;
        rank.Start(rank.Case(collective, {{DataType::kFloat32, shape}}));
      }
    }
    for (int64_t rows = 1; rows < 2 * rank.size() + 1; ++rows) {
      rank.Start(rank.Case(Collective::kReducescatter,
                           {{DataType::kInt32, {rows, 3}}}));
    }
    rank.Start(rank.Case(Collective::kBarrier, {}));
    rank.Finish();
  });
}

TEST_P(OperationConformance, GroupsOfMixedTypesGoTogether) {
  Run([](ConformanceRank& rank) {
    const std::vector<TensorSpec> group = {
        {DataType::kFloat32, {3}},   {DataType::kInt64, {500, 2}},
        {DataType::kFloat32, {0}},   {DataType::kBool, {7}},
        {DataType::kComplex64, {9}}, {DataType::kBFloat16, {2, 2}}};
    for (const auto collective :
         {Collective::kAllreduce, Collective::kReducescatter,
          Collective::kBroadcast}) {
      rank.Start(rank.Case(collective, group));
      rank.Start(rank.Case(collective, group));
    }
    std::vector<TensorSpec> rows = group;
    for (TensorSpec& tensor : rows) tensor.shape[0] = kAnyLength;
    rank.Start(rank.Case(Collective::kAllgather, rows));
    rank.Start(rank.Case(Collective::kAdasum, {{DataType::kFloat32, {3}},
                                               {DataType::kFloat64, {5}},
                                               {DataType::kFloat32, {400}}}));
    rank.Start(rank.Case(Collective::kAllreduce, {}));
    rank.Finish();
  });
}

TEST_P(OperationConformance, AbsentRanksGetTheResultOfTheOthers) {
  Run([](ConformanceRank& rank) {
    for (int repeat = 0; repeat < 3; ++repeat) {  // the last goes by id
      for (int present = 0; present <= rank.size(); ++present) {
        OperationCase spec =
            rank.Case(Collective::kAllreduce, {{DataType::kFloat32, {50}}});
        spec.request.name = absl::StrCat("present ", present);
        spec.request.average = true;
        for (int r = present; r < rank.size(); ++r) spec.absent.push_back(r);
        rank.Start(spec);
      }
      rank.Finish();
    }
  });
}

TEST_P(OperationConformance, ProcessSetsOfAllKindsWorkAtTheSameTime) {
  Run([](ConformanceRank& rank) {
    std::vector<std::vector<int>> sets = {rank.World()};
    for (int r = 0; r < rank.size(); ++r) sets.push_back({r});
    for (int r = 0; r + 1 < rank.size(); ++r) sets.push_back({r, r + 1});
    if (rank.size() > 2) sets.push_back({0, rank.size() - 1});
    std::vector<ProcessSetId> ids;
    for (const auto& members : sets) ids.push_back(rank.Add(members));
    for (size_t i = 0; i < sets.size(); ++i) {
      // Ranks take up their sets in different orders.
      const size_t at = (i + rank.rank()) % sets.size();
      const auto start = [&](Collective collective, TensorSpec tensor) {
        OperationCase spec = rank.Case(collective, {tensor});
        spec.request.name = absl::StrCat(NameOf(collective), " ", at);
        spec.request.process_set = ids[at];
        spec.request.root_rank = sets[at].back();
        spec.request.average = collective == Collective::kAllreduce ||
                               collective == Collective::kReducescatter;
        spec.members = sets[at];
        spec.seed = static_cast<int>(at);
        rank.Start(spec);
      };
      const DataType dtype = DataType::kFloat32;
      start(Collective::kAllreduce, {dtype, {600}});
      start(Collective::kAdasum, {dtype, {7}});
      start(Collective::kBroadcast, {dtype, {7}});
      start(Collective::kReducescatter, {dtype, {7, 2}});
      start(Collective::kAllgather, {dtype, {kAnyLength, 2}});
      start(Collective::kAlltoall, {dtype, {kAnyLength}});
    }
    rank.Finish();
    // Some sets are left to the end of the world.
    for (size_t i = 0; i < ids.size(); i += 2) {
      EXPECT_TRUE(rank.Status(rank.RemoveOperation(ids[i])).ok());
    }
    rank.CheckHealthy();
  });
}

}  // namespace hvdlite::testing

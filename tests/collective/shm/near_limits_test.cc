// Reductions of values near the limits of their types. Results are equal,
// within the rounding that the user guide promises, on all layouts of ranks and
// tensors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collective/fusion/fusion.h"
#include "tests/collective/fusion/fused_cases.h"
#include "tests/collective/kernels/reduce_all_cases.h"
#include "tests/collective/shm/shm_ranks.h"

namespace hvdlite::testing {
namespace {

using collective::Communicator;
using collective::FusedAdasum;
using collective::FusedAllreduce;
using collective::FusedReduceScatter;
using collective::FusedTensor;
using collective::PartitionedTensor;
using collective::Reduction;

constexpr int kSize = 4;  // ranks of every world

struct WorldRow {
  std::string name;
  std::vector<int> node_of_rank;  // empty: no shared memory
  bool in_rank_order = false;
};

const WorldRow kWorlds[] = {{"no shared memory", {}},
                            {"no shared memory, in rank order", {}, true},
                            {"one node", {0, 0, 0, 0}},
                            {"two nodes", {0, 0, 1, 1}},
                            {"nodes of 3 and 1", {0, 0, 0, 1}}};

void RunWorld(const WorldRow& world, const ShmRankBody& body) {
  if (!world.node_of_rank.empty()) {
    return RunOnNodes(world.node_of_rank, kMixedTable, body);
  }
  auto ranks = collective::CreateInProcessWorld(kSize);
  if (world.in_rank_order) {
    for (auto& rank : ranks) {
      rank = collective::CreateRankOrderCommunicator(std::move(rank));
    }
  }
  RunRanks(kSize, [&](int rank) { body(*ranks[static_cast<size_t>(rank)]); });
}

enum class Form { kPacked, kInPlace, kSharedTensors, kReduceScatter };
constexpr Form kForms[] = {Form::kPacked, Form::kInPlace, Form::kSharedTensors,
                           Form::kReduceScatter};

// Sizes for every algorithm of kMixedTable.
constexpr size_t kCounts[] = {4, 400, 6000};

struct Case {
  Reduction reduction;
  // The first `count` elements of `rank`.
  Bytes (*elements)(const Reduction& reduction, int rank, size_t count);

  Bytes Input(int rank, size_t count) const {
    return elements(reduction, rank, count);
  }
  std::string Describe(const WorldRow& world, Form form, size_t count) const {
    return world.name + ", form " + std::to_string(static_cast<int>(form)) +
           ", " + std::to_string(count) + " " +
           std::string(NameOf(reduction.dtype)) + " " +
           std::string(NameOf(reduction.op)) + " / " +
           std::to_string(reduction.divisor) + ", scales " +
           std::to_string(reduction.prescale) + " and " +
           std::to_string(reduction.postscale);
  }
};

// This rank's result for `count` elements, and the index of its first element.
std::pair<Bytes, size_t> Reduce(Communicator& communicator, const Case& c,
                                Form form, size_t count) {
  RankResources own(256);
  const collective::FusionResources resources = own.With(communicator);
  Bytes input = c.Input(communicator.rank(), count);
  Bytes output(input.size());
  absl::Status status;
  size_t first = 0;
  if (form == Form::kReduceScatter) {
    const size_t part = input.size() / kSize;
    output.resize(part);
    first = count / kSize * static_cast<size_t>(communicator.rank());
    const PartitionedTensor tensor{.input = input,
                                   .output = absl::MakeSpan(output),
                                   .input_bytes = {part, part, part, part},
                                   .output_bytes = {}};
    status = FusedReduceScatter(resources, c.reduction, {tensor}, {});
  } else if (form == Form::kSharedTensors) {
    auto memory = communicator.AllocateTensors(input.size());
    EXPECT_TRUE(memory.ok()) << memory.status();
    const absl::Span<std::byte> tensor = memory->bytes.first(input.size());
    std::copy(input.begin(), input.end(), tensor.begin());
    status = FusedAllreduce(resources, c.reduction,
                            {FusedTensor{tensor, tensor}}, {});
    output.assign(tensor.begin(), tensor.end());
    EXPECT_TRUE(communicator.Barrier().ok());  // before the memory goes
  } else {
    if (form == Form::kInPlace) output = input;
    const FusedTensor tensor{form == Form::kInPlace ? output : input,
                             absl::MakeSpan(output)};
    status = FusedAllreduce(resources, c.reduction, {tensor}, {});
  }
  EXPECT_TRUE(status.ok()) << status;
  return {output, first};
}

// ---- Floats.

struct FloatRow {
  DataType dtype;
  double largest;
  double half_ulp;  // relative
  double smallest;
  bool is_wide;  // sums are computed in it and may overflow
};

const FloatRow kFloats[] = {
    {DataType::kFloat16, 65504, 0x1p-11, 0x1p-24, false},
    {DataType::kBFloat16, 0x1.fep127, 0x1p-8, 0x1p-133, false},
    {DataType::kFloat32, std::numeric_limits<float>::max(), 0x1p-24, 0x1p-149,
     true},
    {DataType::kFloat64, std::numeric_limits<double>::max(), 0x1p-53, 0x1p-1074,
     true}};

const FloatRow& RowOf(DataType dtype) {
  return *std::find_if(std::begin(kFloats), std::end(kFloats),
                       [&](const FloatRow& row) { return row.dtype == dtype; });
}

// The largest number whose result is in the type's range.
double LargestInput(const Reduction& reduction) {
  const FloatRow& row = RowOf(reduction.dtype);
  switch (reduction.op) {
    case ReduceOp::kSum:
      if (row.is_wide) return row.largest / (kSize * 16);
      return reduction.divisor == 1 ? row.largest / kSize : row.largest;
    case ReduceOp::kProduct:
      return std::pow(row.largest, 0.99 / kSize);
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return row.largest;
  }
  return 0;
}

double FloatOf(const Reduction& reduction, int rank, size_t i) {
  // Rounding must not leave the range.
  const double part = 0.98 - static_cast<double>(i % 37) / 64;
  switch (i % 4) {
    case 0:  // one sign
      return LargestInput(reduction) * part;
    case 1:  // both signs
      return (rank % 2 == 0 ? -1 : 1) * LargestInput(reduction) * part;
    case 2:  // all but the first below half an ulp of the sum
      return rank == 0 ? 256 : 1;
    default:
      return std::sin(static_cast<double>(i) + 3.0 * rank);
  }
}

Bytes FloatElements(const Reduction& reduction, int rank, size_t count) {
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(FloatOf(reduction, rank, i));
  }
  return Encode(reduction.dtype, values);
}

void ExpectFloats(const WorldRow& world, const Case& c, Form form, size_t count,
                  const Bytes& got, size_t first) {
  const Reduction& reduction = c.reduction;
  const FloatRow& row = RowOf(reduction.dtype);
  const std::vector<double> values = Decode(reduction.dtype, got);
  const bool one_rounding = world.name == "one node" &&
                            form != Form::kReduceScatter && !row.is_wide &&
                            reduction.op == ReduceOp::kSum;
  std::vector<std::vector<double>> inputs;
  for (int rank = 0; rank < kSize; ++rank) {
    inputs.push_back(Decode(reduction.dtype, c.Input(rank, count)));
  }
  const double scale = reduction.factor().value();
  for (size_t i = 0; i < values.size(); ++i) {
    double expected = 0;
    double magnitude = 0;  // reference for rounding errors
    for (int rank = 0; rank < kSize; ++rank) {
      const double value = inputs[rank][first + i] * reduction.prescale * scale;
      expected = rank == 0 ? value
                           : ReducePair(reduction.dtype, reduction.op, expected,
                                        value);
      magnitude = reduction.op == ReduceOp::kSum ? magnitude + std::abs(value)
                                                 : std::abs(expected);
    }
    if (one_rounding) magnitude = std::abs(expected) + magnitude * 0x1p-18;
    const double roundings = one_rounding ? 1 : kSize + 2;
    const double tolerance =
        roundings * (row.half_ulp * magnitude + row.smallest * kSize * 8);
    ASSERT_NEAR(values[i], expected, tolerance)
        << c.Describe(world, form, count) << ", element " << first + i;
  }
}

TEST(NearLimitsTest, FloatsMatchTheReferenceOnAnyLayout) {
  struct Scales {
    double before;
    double after;
  };
  const Scales kScales[] = {
      {1, 1}, {2, 0.5}, {8, 0.125}, {0.125, 8}, {1 / 3.0, 3}};
  for (const WorldRow& world : kWorlds) {
    RunWorld(world, [&](Communicator& communicator) {
      for (const FloatRow& row : kFloats) {
        for (const ReduceOp op : ReduceOpsOf(row.dtype)) {
          for (const int64_t divisor : {1, kSize}) {
            if (divisor != 1 && op != ReduceOp::kSum) continue;
            for (const Scales& scales : kScales) {
              if (op != ReduceOp::kSum && scales.before != 1) continue;
              const Case c{{.dtype = row.dtype,
                            .op = op,
                            .prescale = scales.before,
                            .postscale = scales.after,
                            .divisor = divisor},
                           FloatElements};
              for (const Form form : kForms) {
                for (const size_t count : kCounts) {
                  if (count > 1000 && (row.is_wide || scales.before != 1)) {
                    continue;
                  }
                  const auto [got, first] =
                      Reduce(communicator, c, form, count);
                  ExpectFloats(world, c, form, count, got, first);
                }
              }
            }
          }
        }
      }
    });
  }
}

// ---- Integers.

Bytes WholeElement(const Reduction& reduction, int rank, size_t i) {
  const uint64_t ones = ~uint64_t{0} >> (64 - 8 * SizeOf(reduction.dtype));
  const uint64_t top = IsUnsigned(reduction.dtype) ? ones : ones >> 1;
  const auto r = static_cast<uint64_t>(rank);
  uint64_t value = 0;
  switch (i % 4) {
    case 0:  // sums wrap around
      value = top - i - r;
      break;
    case 1:  // averages are exact and need all bits
      value = top / kSize - i % 16 - r;
      break;
    case 2:  // negative, and averages are truncated
      value = ~(top / kSize - i % 16) + r + 1;
      break;
    default:
      value = (i * 4 + r + 1) * 0x9e3779b97f4a7c15u;
  }
  return EncodeWhole(reduction.dtype, static_cast<int64_t>(value));
}

Bytes WholeElements(const Reduction& reduction, int rank, size_t count) {
  Bytes bytes;
  for (size_t i = 0; i < count; ++i) {
    const Bytes one = WholeElement(reduction, rank, i);
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  return bytes;
}

Bytes BoolElements(const Reduction&, int rank, size_t count) {
  Bytes bytes;
  for (size_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<std::byte>((i >> rank) & 1));
  }
  return bytes;
}

TEST(NearLimitsTest, IntegersAreExactAndWrapAlikeOnAnyLayout) {
  for (const WorldRow& world : kWorlds) {
    RunWorld(world, [&](Communicator& communicator) {
      for (const DataType dtype : AllDataTypes()) {
        if (Rounds(dtype)) continue;
        const bool is_bool = dtype == DataType::kBool;
        for (const ReduceOp op : ReduceOpsOf(dtype)) {
          for (const int64_t divisor : {1, kSize, 3}) {
            if (divisor != 1 && (op != ReduceOp::kSum || is_bool)) continue;
            const Case c{{.dtype = dtype, .op = op, .divisor = divisor},
                         is_bool ? BoolElements : WholeElements};
            for (const Form form : kForms) {
              for (const size_t count : {4, 400}) {
                const auto [got, first] = Reduce(communicator, c, form, count);
                std::vector<Bytes> inputs;
                for (int rank = 0; rank < kSize; ++rank) {
                  inputs.push_back(c.Input(rank, count));
                }
                Bytes expected;
                for (size_t i = 0; i < got.size() / SizeOf(dtype); ++i) {
                  const Bytes one = ExpectedElement(
                      dtype, op, static_cast<int>(divisor), inputs, first + i);
                  expected.insert(expected.end(), one.begin(), one.end());
                }
                ASSERT_TRUE(got == expected) << c.Describe(world, form, count);
              }
            }
          }
        }
      }
    });
  }
}

// Prescaled inputs are truncated and limited to the range, their sum wraps
// around, and the average is truncated, multiplied and truncated again.
TEST(NearLimitsTest, IntegersAreScaledStepByStepOnAnyLayout) {
  struct Row {
    DataType dtype;
    int64_t value;  // on every rank
    double prescale;
    double postscale;
    int64_t expected;  // for an average
  };
  const Row kRows[] = {
      {DataType::kInt8, 7, 0.5, 1, 3},
      {DataType::kInt8, 50, 3, 1, -1},    // 127; 4 * 127 wraps to -4
      {DataType::kInt8, 100, 1, 1, -28},  // 400 wraps to -112
      {DataType::kInt8, 31, 1, 10, 127},
      {DataType::kUint8, 200, 1, 1, 8},  // 800 wraps to 32
      {DataType::kUint8, 63, 1, 2.5, 157},
      {DataType::kInt32, -7, 0.5, 1.5, -4},
      {DataType::kInt64, (int64_t{1} << 60) + 1, 1, 1, (int64_t{1} << 60) + 1},
      {DataType::kInt64, -(int64_t{1} << 60) - 3, 1, 1,
       -(int64_t{1} << 60) - 3},
      // This factor multiplies in float64.
      {DataType::kInt64, (int64_t{1} << 53) + 1, 2, 1, int64_t{1} << 54},
  };
  for (const WorldRow& world : kWorlds) {
    RunWorld(world, [&](Communicator& communicator) {
      for (const Row& row : kRows) {
        RankResources own(64);
        Bytes bytes;
        Bytes expected;
        for (int i = 0; i < 100; ++i) {
          const Bytes value = EncodeWhole(row.dtype, row.value);
          const Bytes result = EncodeWhole(row.dtype, row.expected);
          bytes.insert(bytes.end(), value.begin(), value.end());
          expected.insert(expected.end(), result.begin(), result.end());
        }
        ASSERT_TRUE(FusedAllreduce(own.With(communicator),
                                   {.dtype = row.dtype,
                                    .prescale = row.prescale,
                                    .postscale = row.postscale,
                                    .divisor = kSize},
                                   {InPlace(bytes)}, {})
                        .ok());
        EXPECT_EQ(DecodeWhole(row.dtype, bytes.data()), row.expected);
        EXPECT_TRUE(bytes == expected)
            << world.name << ", " << std::string(NameOf(row.dtype)) << " "
            << row.value;
      }
    });
  }
}

// ---- Adasum.

TEST(NearLimitsTest, AdasumOfEqualTensorsIsThatTensorNearTheLimit) {
  for (const WorldRow& world : kWorlds) {
    RunWorld(world, [&](Communicator& communicator) {
      for (const FloatRow& row : kFloats) {
        if (row.is_wide) continue;
        for (const double prescale : {1.0, 2.0, 8.0}) {
          RankResources own(64);
          const double value =
              Decode(row.dtype, Encode(row.dtype, {row.largest * 0.9}))[0];
          Bytes bytes = Encode(row.dtype, std::vector<double>(500, value));
          ASSERT_TRUE(FusedAdasum(own.With(communicator),
                                  {.dtype = row.dtype,
                                   .prescale = prescale,
                                   .postscale = 1 / prescale},
                                  {InPlace(bytes)}, {})
                          .ok());
          for (const double got : Decode(row.dtype, bytes)) {
            ASSERT_NEAR(got, value, 4 * row.half_ulp * value)
                << world.name << ", " << std::string(NameOf(row.dtype))
                << ", prescale " << prescale;
          }
        }
      }
    });
  }
}

}  // namespace
}  // namespace hvdlite::testing

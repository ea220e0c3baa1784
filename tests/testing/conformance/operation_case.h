// OperationCase is one operation of a coordinator, its ranks, and its expected
// results.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "collective/communicator.h"
#include "collective/kernels/data_type.h"
#include "negotiation/protocol/request.h"
#include "tests/testing/conformance/reduction_reference.h"

namespace hvdlite::testing {

using negotiation::Collective;
using negotiation::kAnyLength;
using negotiation::Request;
using negotiation::TensorSpec;

// What all ranks know about an operation. Ranks contribute ContributionAt()
// plus an offset for each tensor.
struct OperationCase {
  Request request;
  std::vector<int> members;  // of the process set
  std::vector<int> joined;   // members that take part without data
  std::vector<int> absent;   // members that have no gradient
  int64_t max_rows = 4;      // by rank (allgather) or split (alltoall)
  int seed = 0;
  bool average_over_all = false;  // not only over those that take part

  bool is_reduction() const {
    return request.collective == Collective::kAllreduce ||
           request.collective == Collective::kReducescatter;
  }
  bool TakesPart(int rank) const {
    return absl::c_linear_search(members, rank) &&
           !absl::c_linear_search(joined, rank);
  }
  bool Contributes(int rank) const {
    return TakesPart(rank) && !absl::c_linear_search(absent, rank);
  }
  size_t IndexOf(int rank) const {
    return absl::c_find(members, rank) - members.begin();
  }

  // A number that differs from place to place.
  uint64_t Mix(uint64_t a, uint64_t b) const {
    uint64_t x = static_cast<uint64_t>(seed) * 1'000'003 + a * 8191 + b * 131;
    x ^= x >> 13;
    x *= 0x9e3779b97f4a7c15;
    return x >> 33;
  }
  // The rows of `rank`'s tensor in an allgather, or the rows that `from` sends
  // to `to`.
  int64_t GatheredRows(size_t tensor, int rank) const {
    if (!TakesPart(rank)) return 0;
    return static_cast<int64_t>(Mix(tensor + 1, rank) % (max_rows + 1));
  }
  int64_t SentRows(int from, int to) const {
    return static_cast<int64_t>(Mix(from + 100, to) % (max_rows + 1));
  }
  std::vector<int64_t> SentRows(int from) const {
    std::vector<int64_t> rows;
    for (const int to : members) rows.push_back(SentRows(from, to));
    return rows;
  }
};

inline int64_t Elements(const TensorSpec& tensor) {
  return negotiation::SizeBytes(tensor) /
         static_cast<int64_t>(SizeOf(tensor.dtype));
}
inline int64_t ElementsPerRow(const TensorSpec& tensor) {
  return negotiation::RowBytes(tensor) /
         static_cast<int64_t>(SizeOf(tensor.dtype));
}

inline double ElementOf(const OperationCase& spec, size_t tensor, int rank,
                        int64_t i) {
  const auto offset = spec.Mix(tensor, 7) % 1000;
  return ContributionAt(spec.request.tensors[tensor].dtype, spec.request.op,
                        rank, static_cast<size_t>(i) + offset);
}

inline std::vector<double> ElementsOf(const OperationCase& spec, size_t tensor,
                                      int rank, int64_t begin, int64_t count) {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = ElementOf(spec, tensor, rank, begin + i);
  }
  return values;
}

// What a rank contributes to elements [begin, begin + count) after prescaling.
inline std::vector<double> PrescaledElements(const OperationCase& spec,
                                             size_t tensor, int rank,
                                             int64_t begin, int64_t count) {
  std::vector<double> values = ElementsOf(spec, tensor, rank, begin, count);
  for (double& value : values) {
    value = ScaledValue(spec.request.tensors[tensor].dtype,
                        spec.request.prescale_factor, value);
  }
  return values;
}

inline std::vector<double> ExpectedSum(const OperationCase& spec, size_t tensor,
                                       int64_t begin, int64_t count) {
  const Request& request = spec.request;
  std::vector<std::vector<double>> contributions;
  for (const int rank : spec.members) {
    if (!spec.Contributes(rank)) continue;
    contributions.push_back(ElementsOf(spec, tensor, rank, begin, count));
  }
  const size_t ranks =
      spec.members.size() - (spec.average_over_all ? 0 : spec.joined.size());
  return Reduced({.dtype = request.tensors[tensor].dtype,
                  .op = request.op,
                  .prescale = request.prescale_factor,
                  .postscale = request.postscale_factor,
                  .divisor = request.average ? static_cast<int64_t>(ranks) : 1},
                 std::move(contributions));
}

inline std::vector<double> AdasumPair(const std::vector<double>& a,
                                      const std::vector<double>& b) {
  double aa = 0, ab = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    aa += a[i] * a[i];
    ab += a[i] * b[i];
    bb += b[i] * b[i];
  }
  std::vector<double> sum(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    sum[i] = (aa == 0 ? 0 : a[i] * (1 - ab / (2 * aa))) +
             (bb == 0 ? 0 : b[i] * (1 - ab / (2 * bb)));
  }
  return sum;
}

// FusedAdasum defines which ranks combine.
inline std::vector<double> ExpectedAdasum(const OperationCase& spec,
                                          size_t tensor) {
  const int64_t count = Elements(spec.request.tensors[tensor]);
  std::vector<std::vector<double>> nodes;
  const size_t extra =
      spec.members.size() - std::bit_floor(spec.members.size());
  for (size_t i = 0; i < spec.members.size(); ++i) {
    const int rank = spec.members[i];
    auto vector = spec.Contributes(rank)
                      ? PrescaledElements(spec, tensor, rank, 0, count)
                      : std::vector<double>(count);
    if (i < 2 * extra && i % 2 == 1) {
      nodes.back() = AdasumPair(nodes.back(), vector);
    } else {
      nodes.push_back(std::move(vector));
    }
  }
  while (nodes.size() > 1) {
    std::vector<std::vector<double>> above;
    for (size_t i = 0; i < nodes.size(); i += 2) {
      above.push_back(AdasumPair(nodes[i], nodes[i + 1]));
    }
    nodes = std::move(above);
  }
  for (double& value : nodes[0]) value *= spec.request.postscale_factor;
  return nodes[0];
}

// The expected output of `rank` for the tensor.
inline std::vector<double> ExpectedOutput(const OperationCase& spec,
                                          size_t tensor, int rank) {
  const Request& request = spec.request;
  const TensorSpec& shape = request.tensors[tensor];
  const int64_t per_row = ElementsPerRow(shape);
  std::vector<double> expected;
  const auto append = [&](int from, int64_t first_row, int64_t rows) {
    const auto part =
        ElementsOf(spec, tensor, from, first_row * per_row, rows * per_row);
    expected.insert(expected.end(), part.begin(), part.end());
  };
  switch (request.collective) {
    case Collective::kAllreduce:
      return ExpectedSum(spec, tensor, 0, Elements(shape));
    case Collective::kAdasum:
      return ExpectedAdasum(spec, tensor);
    case Collective::kBroadcast:
      return ElementsOf(spec, tensor, request.root_rank, 0, Elements(shape));
    case Collective::kReducescatter: {
      const auto rows = collective::EvenRows(
          shape.shape.front(), static_cast<int>(spec.members.size()));
      int64_t first = 0;
      for (size_t i = 0; i < spec.IndexOf(rank); ++i) first += rows[i];
      return ExpectedSum(spec, tensor, first * per_row,
                         rows[spec.IndexOf(rank)] * per_row);
    }
    case Collective::kAllgather:
      for (const int from : spec.members) {
        append(from, 0, spec.GatheredRows(tensor, from));
      }
      return expected;
    case Collective::kAlltoall:
      for (const int from : spec.members) {
        int64_t first = 0;
        for (const int to : spec.members) {
          if (to == rank) break;
          first += spec.SentRows(from, to);
        }
        append(from, first, spec.SentRows(from, rank));
      }
      return expected;
    default:
      return {};
  }
}

// The maximum difference between an element of the result and `expected`;
// `largest` is the largest expected element.
inline double Tolerance(const OperationCase& spec, DataType dtype,
                        double expected, double largest) {
  if (!Rounds(dtype)) return 0;
  const DataType wire = WireType(dtype, spec.request.compression);
  const bool coarse = SizeOf(wire) == 2;
  if (spec.request.collective == Collective::kAdasum) {
    return (largest + 1) * (coarse ? 0.05 : 1e-5);
  }
  if (dtype == DataType::kBFloat16) return std::abs(expected) * 0.005;
  return std::abs(expected) * (dtype == DataType::kFloat16 ? 7e-4 : 3e-7);
}

}  // namespace hvdlite::testing

// The expected results of reductions, computed element by element in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "collective/fusion/fusion.h"
#include "collective/kernels/data_type.h"
#include "tests/testing/conformance/element_values.h"

namespace hvdlite::testing {

using collective::DataType;
using collective::ReduceOp;

inline std::vector<DataType> AllDataTypes() {
  std::vector<DataType> all;
  for (int i = 0; i < collective::kNumDataTypes; ++i) {
    all.push_back(static_cast<DataType>(i));
  }
  return all;
}

// The data types to test a backend with: all of them; under ThreadSanitizer
// only one of each width, since each takes long.
inline std::vector<DataType> DataTypesToTry() {
#ifdef __SANITIZE_THREAD__
  return {DataType::kInt8, DataType::kBFloat16, DataType::kFloat32,
          DataType::kInt64, DataType::kComplex128};
#else
  return AllDataTypes();
#endif
}

// The reductions that the type supports.
inline std::vector<ReduceOp> ReduceOpsOf(DataType dtype) {
  if (PartOf(dtype) != dtype) return {ReduceOp::kSum};
  std::vector<ReduceOp> all;
  for (int i = 0; i < collective::kNumReduceOps; ++i) {
    all.push_back(static_cast<ReduceOp>(i));
  }
  return all;
}

// For random choices: `op`, or a sum if the type does not support it.
inline ReduceOp OpOrSum(DataType dtype, ReduceOp op) {
  return HasOp(dtype, op) ? op : ReduceOp::kSum;
}

inline bool IsUnsigned(DataType dtype) {
  return FindTraits(dtype)->kind == collective::NumberKind::kUnsigned;
}

// The pattern of contributions repeats after this many elements. It is long
// enough to show misplaced elements, and short enough to be computed quickly.
inline constexpr size_t kPeriod = 2640;

// What `rank` contributes at index i: values whose reductions over up to 8
// ranks are exact in every data type and in any order.
inline double ContributionAt(DataType dtype, ReduceOp op, int rank, size_t i) {
  const size_t mixed = i * 7 + static_cast<size_t>(rank) * 5 + i / 11;
  if (dtype == DataType::kBool) return mixed % 3 != 0 ? 1 : 0;
  if (op == ReduceOp::kProduct) {
    const double factor = mixed % 4 == 0 && rank < 6 ? 2 : 1;
    return !IsUnsigned(dtype) && mixed % 5 == 0 ? -factor : factor;
  }
  const double value = static_cast<double>(mixed % 16);
  return IsUnsigned(dtype) ? value : value - 7;
}

inline std::vector<double> Contribution(DataType dtype, ReduceOp op, int rank,
                                        size_t count) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = ContributionAt(dtype, op, rank, i);
  }
  return values;
}

inline double ReducePair(DataType dtype, ReduceOp op, double a, double b) {
  if (dtype == DataType::kBool) {
    const bool is_or = op == ReduceOp::kSum || op == ReduceOp::kMax;
    return is_or ? (a != 0 || b != 0) : (a != 0 && b != 0);
  }
  switch (op) {
    case ReduceOp::kSum:
      return a + b;
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
  }
  return 0;
}

// factor * value as an element of `dtype`; floats are not rounded.
inline double ScaledValue(DataType dtype, double factor, double value) {
  if (factor == 1 || Rounds(dtype)) return factor * value;
  const double product = factor * value;
  const double whole = std::trunc(product + std::copysign(1e-6, product));
  if (dtype == DataType::kBool) return whole != 0 ? 1 : 0;
  // 64-bit integers are not scaled beyond their range here.
  const int bits = static_cast<int>(8 * SizeOf(dtype));
  if (bits == 64) return whole;
  const double end = std::ldexp(1, IsUnsigned(dtype) ? bits : bits - 1);
  return std::clamp(whole, IsUnsigned(dtype) ? 0.0 : -end, end - 1);
}

// The reduction of the contributions of at least one rank; not compressed.
inline std::vector<double> Reduced(
    const collective::Reduction& reduction,
    std::vector<std::vector<double>> contributions) {
  const DataType dtype = reduction.dtype;
  for (std::vector<double>& values : contributions) {
    for (double& value : values) {
      value = ScaledValue(dtype, reduction.prescale, value);
    }
  }
  std::vector<double> result = std::move(contributions[0]);
  for (size_t rank = 1; rank < contributions.size(); ++rank) {
    for (size_t i = 0; i < result.size(); ++i) {
      result[i] =
          ReducePair(dtype, reduction.op, result[i], contributions[rank][i]);
    }
  }
  for (double& value : result) {
    value =
        ScaledValue(dtype, 1.0 / static_cast<double>(reduction.divisor), value);
    value = ScaledValue(dtype, reduction.postscale, value);
  }
  return result;
}

// Repeats `period` up to `size` bytes.
inline std::vector<std::byte> Repeat(const std::vector<std::byte>& period,
                                     size_t size) {
  std::vector<std::byte> bytes;
  bytes.reserve(size);
  while (bytes.size() < size) {
    const size_t some = std::min(period.size(), size - bytes.size());
    bytes.insert(bytes.end(), period.begin(), period.begin() + some);
  }
  return bytes;
}

// Contribution() as bytes.
inline std::vector<std::byte> ContributionBytes(DataType dtype, ReduceOp op,
                                                int rank, size_t count) {
  return Repeat(
      Encode(dtype, Contribution(dtype, op, rank, std::min(count, kPeriod))),
      count * SizeOf(dtype));
}

// The reduction of the ContributionBytes() of all ranks.
inline std::vector<std::byte> ExpectedReduction(DataType dtype, ReduceOp op,
                                                int size, size_t count) {
  std::vector<double> values =
      Contribution(dtype, op, 0, std::min(count, kPeriod));
  for (size_t i = 0; i < values.size(); ++i) {
    for (int rank = 1; rank < size; ++rank) {
      values[i] =
          ReducePair(dtype, op, values[i], ContributionAt(dtype, op, rank, i));
    }
  }
  return Repeat(Encode(dtype, values), count * SizeOf(dtype));
}

}  // namespace hvdlite::testing

// Elements of all kinds, and the expected results of ReduceAll(), computed one
// by one with the conversions of element_values.h.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/testing/conformance/element_values.h"
#include "tests/testing/conformance/reduction_reference.h"

namespace hvdlite::testing {

using Bytes = std::vector<std::byte>;

// Whole numbers wrap around: the part of `value` that fits into the type.
inline int64_t Wrapped(DataType dtype, uint64_t value) {
  const size_t unused_bits = 64 - 8 * SizeOf(dtype);
  if (IsUnsigned(dtype)) {
    return static_cast<int64_t>(value << unused_bits >> unused_bits);
  }
  return static_cast<int64_t>(value << unused_bits) >> unused_bits;
}

inline Bytes EncodeWhole(DataType dtype, int64_t value) {
  Bytes bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));  // little-endian
  bytes.resize(SizeOf(dtype));
  return bytes;
}
inline int64_t DecodeWhole(DataType dtype, const std::byte* element) {
  uint64_t value = 0;
  std::memcpy(&value, element, SizeOf(dtype));
  return Wrapped(dtype, value);
}

template <typename Float>
Float CombineFloats(ReduceOp op, Float a, Float b) {
  switch (op) {
    case ReduceOp::kSum:
      return a + b;
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kMin:
      return std::isnan(a) || a < b ? a : b;
    case ReduceOp::kMax:
      return std::isnan(a) || a > b ? a : b;
  }
  return 0;
}

inline int64_t CombineWhole(DataType dtype, ReduceOp op, int64_t a, int64_t b) {
  const uint64_t x = static_cast<uint64_t>(a);
  const uint64_t y = static_cast<uint64_t>(b);
  switch (op) {
    case ReduceOp::kSum:
      return Wrapped(dtype, x + y);
    case ReduceOp::kProduct:
      return Wrapped(dtype, x * y);
    case ReduceOp::kMin:
    case ReduceOp::kMax: {
      const bool a_is_less = IsUnsigned(dtype) ? x < y : a < b;
      return a_is_less == (op == ReduceOp::kMin) ? a : b;
    }
  }
  return 0;
}

// (... op ...) / divisor of the elements with index `i`.
inline Bytes ExpectedElement(DataType dtype, ReduceOp op, int divisor,
                             const std::vector<Bytes>& inputs, size_t i) {
  if (PartOf(dtype) != dtype) {
    Bytes both = ExpectedElement(PartOf(dtype), op, divisor, inputs, 2 * i);
    const Bytes second =
        ExpectedElement(PartOf(dtype), op, divisor, inputs, 2 * i + 1);
    both.insert(both.end(), second.begin(), second.end());
    return both;
  }
  const size_t size = SizeOf(dtype);
  const auto element = [&](size_t k) { return &inputs[k][i * size]; };
  if (IsFloat(dtype)) {
    const auto value = [&](size_t k) {
      return Decode(dtype, absl::MakeConstSpan(element(k), size))[0];
    };
    const double factor = 1.0 / divisor;
    if (dtype == DataType::kFloat64) {
      double combined = value(0);
      for (size_t k = 1; k < inputs.size(); ++k) {
        combined = CombineFloats(op, combined, value(k));
      }
      return Encode(dtype, {combined * factor});
    }
    // Inputs of a bfloat16 sum are first divided by a power of two.
    double power = 1;
    while (dtype == DataType::kBFloat16 && op == ReduceOp::kSum &&
           power < divisor && power < static_cast<double>(inputs.size())) {
      power *= 2;
    }
    float combined = static_cast<float>(value(0) / power);
    for (size_t k = 1; k < inputs.size(); ++k) {
      combined =
          CombineFloats(op, combined, static_cast<float>(value(k) / power));
    }
    return Encode(dtype, {combined * static_cast<float>(factor * power)});
  }
  if (dtype == DataType::kBool) {
    bool any = false;
    bool all = true;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const bool is_true = *element(k) != std::byte{0};
      any = any || is_true;
      all = all && is_true;
    }
    const bool is_or = op == ReduceOp::kSum || op == ReduceOp::kMax;
    return Encode(dtype, {(is_or ? any : all) && divisor == 1 ? 1.0 : 0.0});
  }
  int64_t combined = DecodeWhole(dtype, element(0));
  for (size_t k = 1; k < inputs.size(); ++k) {
    combined =
        CombineWhole(dtype, op, combined, DecodeWhole(dtype, element(k)));
  }
  return EncodeWhole(
      dtype, IsUnsigned(dtype)
                 ? static_cast<int64_t>(static_cast<uint64_t>(combined) /
                                        static_cast<uint64_t>(divisor))
                 : combined / divisor);
}

// Random bits of the whole range, numbers of similar size, and special values.
inline Bytes RandomElements(DataType dtype, size_t count,
                            std::mt19937_64& random) {
  if (PartOf(dtype) != dtype) {
    return RandomElements(PartOf(dtype), 2 * count, random);
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::array kSpecial = {0.0,
                                   -0.0,
                                   kInfinity,
                                   -kInfinity,
                                   std::numeric_limits<double>::quiet_NaN(),
                                   0x1p-149,
                                   -0x1.8p-140,
                                   0x1p-24,
                                   -0x1p-26,
                                   0x1.8p-1070,
                                   65504.0,
                                   3e38};
  Bytes elements;
  for (size_t i = 0; i < count; ++i) {
    Bytes element;
    const uint64_t bits = random();
    if (!IsFloat(dtype)) {
      element = EncodeWhole(dtype, static_cast<int64_t>(random()));
      if (dtype == DataType::kBool && bits % 3 != 0) element = {std::byte{0}};
    } else if (bits % 8 == 0) {
      element = Encode(dtype, {kSpecial[random() % kSpecial.size()]});
    } else if (bits % 8 < 3) {
      element = EncodeWhole(DataType::kInt64, static_cast<int64_t>(random()));
      element.resize(SizeOf(dtype));
    } else {
      element = Encode(dtype, {static_cast<double>(bits >> 32) * 0x1p-31 - 1});
    }
    elements.insert(elements.end(), element.begin(), element.end());
  }
  return elements;
}

// Whether all bytes are equal, except elements that are NaN in both.
inline bool SameButForNans(DataType dtype, absl::Span<const std::byte> got,
                           absl::Span<const std::byte> expected) {
  if (got == expected) return true;
  if (PartOf(dtype) != dtype) {
    return SameButForNans(PartOf(dtype), got, expected);
  }
  if (!IsFloat(dtype) || got.size() != expected.size()) return false;
  const size_t size = SizeOf(dtype);
  for (size_t i = 0; i < got.size(); i += size) {
    const auto a = got.subspan(i, size);
    const auto b = expected.subspan(i, size);
    if (a != b &&
        !(std::isnan(Decode(dtype, a)[0]) && std::isnan(Decode(dtype, b)[0]))) {
      return false;
    }
  }
  return true;
}

}  // namespace hvdlite::testing

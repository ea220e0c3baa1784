// Element types, how they are reduced, and how they travel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace hvdlite::collective {

// The values travel between ranks: append only.
enum class DataType : uint8_t {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,   // IEEE 754 binary16
  kBFloat16 = 3,  // the upper half of a binary32
  kInt32 = 4,
  kInt64 = 5,
  kUint8 = 6,
  kInt8 = 7,
  kBool = 8,  // one byte, 0 or 1
};
inline constexpr int kNumDataTypes = 9;

size_t SizeOf(DataType dtype);             // bytes per element; 0 if unknown
absl::string_view NameOf(DataType dtype);  // "float32", ...; or "unknown"

// The values travel between ranks: append only. An average is a sum whose
// result is scaled when it is unpacked. On bool, sum and max are logical or,
// product and min logical and. Integer sums and products wrap around. The
// minimum and the maximum of anything and NaN are NaN.
enum class ReduceOp : uint8_t { kSum = 0, kMin = 1, kMax = 2, kProduct = 3 };
inline constexpr int kNumReduceOps = 4;

absl::string_view NameOf(ReduceOp op);  // "sum", ...; or "unknown"

// float32 and float64 values travel as 16-bit floats, which are added in
// float32 and rounded once per hop. Other types are not compressed. The values
// travel between ranks: append only.
enum class Compression : uint8_t { kNone = 0, kFloat16 = 1, kBFloat16 = 2 };
inline constexpr int kNumCompressions = 3;

absl::string_view NameOf(Compression compression);  // "none", "fp16", "bf16"

// The type in which elements of `dtype` travel.
DataType WireType(DataType dtype, Compression compression);

}  // namespace hvdlite::collective

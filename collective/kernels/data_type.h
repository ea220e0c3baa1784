// Element types that can be reduced.
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

}  // namespace hvdlite::collective

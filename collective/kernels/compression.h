// Compression: how floating-point values travel between ranks.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

// float32 and float64 values travel as 16-bit floats, which are added in
// float32 and rounded once per hop. Other types are not compressed. The values
// travel between ranks: append only.
enum class Compression : uint8_t { kNone = 0, kFloat16 = 1, kBFloat16 = 2 };
inline constexpr int kNumCompressions = 3;

absl::string_view NameOf(Compression compression);  // "none", "fp16", "bf16"

// The type in which elements of `dtype` travel.
DataType WireType(DataType dtype, Compression compression);

}  // namespace hvdlite::collective

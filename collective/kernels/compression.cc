#include "collective/kernels/compression.h"

namespace hvdlite::collective {

absl::string_view NameOf(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return "none";
    case Compression::kFloat16:
      return "fp16";
    case Compression::kBFloat16:
      return "bf16";
  }
  return "unknown";
}

DataType WireType(DataType dtype, Compression compression) {
  if (dtype != DataType::kFloat32 && dtype != DataType::kFloat64) return dtype;
  switch (compression) {
    case Compression::kNone:
      return dtype;
    case Compression::kFloat16:
      return DataType::kFloat16;
    case Compression::kBFloat16:
      return DataType::kBFloat16;
  }
  return dtype;
}

}  // namespace hvdlite::collective

#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

namespace {

constexpr bool RowsAreInOrder() {
  for (int i = 0; i < kNumDataTypes; ++i) {
    if (static_cast<int>(kDataTypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(RowsAreInOrder());

}  // namespace

size_t SizeOf(DataType dtype) {
  const DataTypeTraits* const traits = FindTraits(dtype);
  return traits == nullptr ? 0 : traits->bytes;
}

absl::string_view NameOf(DataType dtype) {
  const DataTypeTraits* const traits = FindTraits(dtype);
  return traits == nullptr ? "unknown" : traits->name;
}

bool IsFloat(DataType dtype) {
  const DataTypeTraits* const traits = FindTraits(dtype);
  return traits != nullptr && traits->kind == NumberKind::kFloat;
}

bool Rounds(DataType dtype) {
  const DataTypeTraits* const traits = FindTraits(dtype);
  return traits != nullptr && (traits->kind == NumberKind::kFloat ||
                               traits->kind == NumberKind::kComplex);
}

absl::string_view NameOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kProduct:
      return "product";
  }
  return "unknown";
}

bool HasOp(DataType dtype, ReduceOp op) {
  const DataTypeTraits* const traits = FindTraits(dtype);
  if (traits == nullptr || static_cast<int>(op) >= kNumReduceOps) return false;
  return traits->kind != NumberKind::kComplex || op == ReduceOp::kSum;
}

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
  if (!IsFloat(dtype) || SizeOf(dtype) <= 2) return dtype;
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

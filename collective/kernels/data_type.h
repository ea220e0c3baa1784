// Element types, the operations that reduce them, and their wire types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <tuple>

#include "absl/strings/string_view.h"

namespace hvdlite::collective {

// To add a data type: add its value, its row in kDataTypes and its element. The
// rest follows from these, except LibTorch's name of it
// (torch_plugin/ops/tensors.cc). If C++ has no such type, also add the
// element's struct and conversions (elements.h).

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
  kInt16 = 9,
  kUint16 = 10,
  kUint32 = 11,
  kUint64 = 12,
  kComplex64 = 13,   // two float32: real and imaginary part
  kComplex128 = 14,  // two float64
};

// Complex numbers are processed as the two floats of their parts.
enum class NumberKind : uint8_t { kFloat, kSigned, kUnsigned, kBool, kComplex };

struct DataTypeTraits {
  DataType dtype;
  absl::string_view name;
  size_t bytes;  // per element
  NumberKind kind;
};

// Indexed by value.
inline constexpr DataTypeTraits kDataTypes[] = {
    {DataType::kFloat32, "float32", 4, NumberKind::kFloat},
    {DataType::kFloat64, "float64", 8, NumberKind::kFloat},
    {DataType::kFloat16, "float16", 2, NumberKind::kFloat},
    {DataType::kBFloat16, "bfloat16", 2, NumberKind::kFloat},
    {DataType::kInt32, "int32", 4, NumberKind::kSigned},
    {DataType::kInt64, "int64", 8, NumberKind::kSigned},
    {DataType::kUint8, "uint8", 1, NumberKind::kUnsigned},
    {DataType::kInt8, "int8", 1, NumberKind::kSigned},
    {DataType::kBool, "bool", 1, NumberKind::kBool},
    {DataType::kInt16, "int16", 2, NumberKind::kSigned},
    {DataType::kUint16, "uint16", 2, NumberKind::kUnsigned},
    {DataType::kUint32, "uint32", 4, NumberKind::kUnsigned},
    {DataType::kUint64, "uint64", 8, NumberKind::kUnsigned},
    {DataType::kComplex64, "complex64", 8, NumberKind::kComplex},
    {DataType::kComplex128, "complex128", 16, NumberKind::kComplex},
};
inline constexpr int kNumDataTypes = std::size(kDataTypes);

struct Float16;
struct BFloat16;
struct Bool;

// The C++ types of the elements, by value; for complex types, of the parts.
using ElementTypes =
    std::tuple<float, double, Float16, BFloat16, int32_t, int64_t, uint8_t,
               int8_t, Bool, int16_t, uint16_t, uint32_t, uint64_t,
               /*complex64*/ float, /*complex128*/ double>;

// nullptr if unknown.
constexpr const DataTypeTraits* FindTraits(DataType dtype) {
  return static_cast<int>(dtype) < kNumDataTypes
             ? &kDataTypes[static_cast<int>(dtype)]
             : nullptr;
}

size_t SizeOf(DataType dtype);             // bytes per element; 0 if unknown
absl::string_view NameOf(DataType dtype);  // "float32", ...; or "unknown"
bool IsFloat(DataType dtype);              // false if unknown
// Whether sums are rounded and thus depend on the order: floats and complex
// numbers. False if unknown.
bool Rounds(DataType dtype);

// The values travel between ranks: append only. An average is a sum that is
// scaled when it is unpacked. For bool, sum and max are logical or; product and
// min are logical and. Integer sums and products wrap around. The minimum or
// maximum with NaN is NaN.
enum class ReduceOp : uint8_t { kSum = 0, kMin = 1, kMax = 2, kProduct = 3 };
inline constexpr int kNumReduceOps = 4;

absl::string_view NameOf(ReduceOp op);  // "sum", ...; or "unknown"

// Whether `op` can reduce elements of the type. Complex numbers have only the
// sum: they have no order, and the two roundings in each part of a product may
// differ among processors. False if the type or `op` is unknown.
bool HasOp(DataType dtype, ReduceOp op);

// float32 and float64 values travel as 16-bit floats, which are added in
// float32 and rounded once per hop. Other types are not compressed. The values
// travel between ranks: append only.
enum class Compression : uint8_t { kNone = 0, kFloat16 = 1, kBFloat16 = 2 };
inline constexpr int kNumCompressions = 3;

absl::string_view NameOf(Compression compression);  // "none", "fp16", "bf16"

// The type in which elements of `dtype` travel.
DataType WireType(DataType dtype, Compression compression);

}  // namespace hvdlite::collective

// The C++ type of the elements of each data type, for loops over them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "collective/kernels/data_type.h"
#include "collective/kernels/float16.h"

namespace hvdlite::collective {

// Any byte that is not 0 is true.
struct Bool {
  uint8_t byte;
};

// Elements are widened to the type that is computed with, and narrowed again.
template <typename T>
T Widen(T value) {
  return value;
}
inline float Widen(Float16 value) { return ToFloat(value); }
inline float Widen(BFloat16 value) { return ToFloat(value); }
inline bool Widen(Bool value) { return value.byte != 0; }

template <typename T>
using Wide = decltype(Widen(T{}));

template <typename T>
T Narrow(Wide<T> value) {
  if constexpr (std::is_same_v<T, Float16>) {
    return ToFloat16(value);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return ToBFloat16(value);
  } else if constexpr (std::is_same_v<T, Bool>) {
    return Bool{static_cast<uint8_t>(value)};
  } else {
    return value;
  }
}

template <typename T>
inline constexpr bool kIsFloat = std::is_floating_point_v<Wide<T>>;

// Calls `visitor` with a value of the element type.
template <typename Visitor>
void VisitElementType(DataType dtype, Visitor visitor) {
  switch (dtype) {
    case DataType::kFloat32:
      return visitor(float{});
    case DataType::kFloat64:
      return visitor(double{});
    case DataType::kFloat16:
      return visitor(Float16{});
    case DataType::kBFloat16:
      return visitor(BFloat16{});
    case DataType::kInt32:
      return visitor(int32_t{});
    case DataType::kInt64:
      return visitor(int64_t{});
    case DataType::kUint8:
      return visitor(uint8_t{});
    case DataType::kInt8:
      return visitor(int8_t{});
    case DataType::kBool:
      return visitor(Bool{});
  }
}

// The same, of a float type; does nothing for the others.
template <typename Visitor>
void VisitFloatType(DataType dtype, Visitor visitor) {
  VisitElementType(dtype, [&](auto element) {
    if constexpr (kIsFloat<decltype(element)>) visitor(element);
  });
}

}  // namespace hvdlite::collective

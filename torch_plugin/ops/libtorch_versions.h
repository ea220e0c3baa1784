// What LibTorch 2.x has and 1.13 lacks or calls by another name: nothing else
// looks at the version.
#pragma once

#include <ATen/autocast_mode.h>
#include <torch/version.h>

namespace hvdlite::internal {

#if TORCH_VERSION_MAJOR > 2 || \
    (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
// From 2.4 on autocast takes the device as an argument. Whether it is on:
inline bool CpuAutocast() {
  return at::autocast::is_autocast_enabled(at::kCPU);
}
// Turns it on or off.
inline void SetCpuAutocast(bool on) {
  at::autocast::set_autocast_enabled(at::kCPU, on);
}
// What it computes in.
inline at::ScalarType CpuAutocastType() {
  return at::autocast::get_autocast_dtype(at::kCPU);
}
// Sets what it computes in.
inline void SetCpuAutocastType(at::ScalarType type) {
  at::autocast::set_autocast_dtype(at::kCPU, type);
}
#else
// The same four by the names that the CPU had of its own.
inline bool CpuAutocast() { return at::autocast::is_cpu_enabled(); }
inline void SetCpuAutocast(bool on) { at::autocast::set_cpu_enabled(on); }
inline at::ScalarType CpuAutocastType() {
  return at::autocast::get_autocast_cpu_dtype();
}
inline void SetCpuAutocastType(at::ScalarType type) {
  at::autocast::set_autocast_cpu_dtype(type);
}
#endif

#if TORCH_VERSION_MAJOR > 2 || \
    (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
// From 2.3 on there are tensors of unsigned integers of 2, 4 and 8 bytes.
inline constexpr at::ScalarType kUint16 = at::kUInt16;
inline constexpr at::ScalarType kUint32 = at::kUInt32;
inline constexpr at::ScalarType kUint64 = at::kUInt64;
#else
// Before, no tensor has such a type.
inline constexpr at::ScalarType kUint16 = at::ScalarType::Undefined;
inline constexpr at::ScalarType kUint32 = at::ScalarType::Undefined;
inline constexpr at::ScalarType kUint64 = at::ScalarType::Undefined;
#endif

}  // namespace hvdlite::internal

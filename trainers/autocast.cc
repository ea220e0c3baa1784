#include "trainers/autocast.h"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

namespace hvdlite::trainers {
namespace {

// LibTorch 2.4 gave these functions an argument for the device.
#if TORCH_VERSION_MAJOR > 2 || \
    (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
bool IsEnabled() { return at::autocast::is_autocast_enabled(at::kCPU); }
void SetEnabled(bool on) { at::autocast::set_autocast_enabled(at::kCPU, on); }
at::ScalarType Type() { return at::autocast::get_autocast_dtype(at::kCPU); }
void SetType(at::ScalarType type) {
  at::autocast::set_autocast_dtype(at::kCPU, type);
}
#else
bool IsEnabled() { return at::autocast::is_cpu_enabled(); }
void SetEnabled(bool on) { at::autocast::set_cpu_enabled(on); }
at::ScalarType Type() { return at::autocast::get_autocast_cpu_dtype(); }
void SetType(at::ScalarType type) {
  at::autocast::set_autocast_cpu_dtype(type);
}
#endif

}  // namespace

Bfloat16Autocast::Bfloat16Autocast(bool enabled) : enabled_(enabled) {
  if (!enabled_) return;
  was_enabled_ = IsEnabled();
  previous_type_ = Type();
  SetEnabled(true);
  SetType(at::kBFloat16);
  at::autocast::increment_nesting();
}

Bfloat16Autocast::~Bfloat16Autocast() {
  if (!enabled_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  SetType(previous_type_);
  SetEnabled(was_enabled_);
}

}  // namespace hvdlite::trainers

#include "collective/fusion/fusion_buffer.h"

#include <algorithm>
#include <new>

namespace hvdlite::collective {
namespace {

constexpr size_t kGranularity = 64;  // a cache line, and any element whole

size_t RoundUp(size_t bytes) {
  return (std::max(bytes, size_t{1}) + kGranularity - 1) / kGranularity *
         kGranularity;
}

}  // namespace

FusionBuffer::FusionBuffer(size_t bytes)
    : data_(static_cast<std::byte*>(
          ::operator new (RoundUp(bytes), std::align_val_t{kAlignment}))),
      size_(RoundUp(bytes)) {}

void FusionBuffer::Free::operator()(std::byte* data) const {
  ::operator delete (data, std::align_val_t{kAlignment});
}

}  // namespace hvdlite::collective

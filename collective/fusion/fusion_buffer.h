// FusionBuffer: the memory that tensors are packed into.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/types/span.h"

namespace hvdlite::collective {

// Aligned to a page, so that any vector width and DMA engine is content.
// Move-only; owns its memory.
class FusionBuffer {
 public:
  static constexpr size_t kAlignment = 4096;

  // `bytes` is rounded up to a multiple of 64; at least 64. Contents are
  // undefined at first.
  explicit FusionBuffer(size_t bytes);

  absl::Span<std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_;
};

}  // namespace hvdlite::collective

// FNV-1a hash (Fowler, Noll and Vo), 64 bits, to distinguish texts and files.
// Unlike absl::Hash it is the same in every process and build.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace hvdlite::base {

inline constexpr uint64_t kFnv1aOfNothing = 0xcbf29ce484222325;

// Hash of the bytes hashed in `so_far`, followed by `bytes`.
constexpr uint64_t Fnv1a(absl::string_view bytes,
                         uint64_t so_far = kFnv1aOfNothing) {
  for (const char byte : bytes) {
    so_far = (so_far ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return so_far;
}
static_assert(Fnv1a("a") == 0xaf63dc4c8601ec8c);  // published by its authors

}  // namespace hvdlite::base

// FNV-1a (Fowler, Noll and Vo), 64 bits: tells texts and files apart, and is
// the same in every process and build, unlike absl::Hash.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace hvdlite::base {

inline constexpr uint64_t kFnv1aOfNothing = 0xcbf29ce484222325;

// Of what `so_far` is of, and `bytes` after it.
constexpr uint64_t Fnv1a(absl::string_view bytes,
                         uint64_t so_far = kFnv1aOfNothing) {
  for (const char byte : bytes) {
    so_far = (so_far ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return so_far;
}
static_assert(Fnv1a("a") == 0xaf63dc4c8601ec8c);  // as its authors publish

}  // namespace hvdlite::base

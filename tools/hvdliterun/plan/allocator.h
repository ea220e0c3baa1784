// Which malloc the ranks use, and how it is set up for tensors: freed memory is
// kept, since the next step needs the same again.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/hvdliterun/plan/variables.h"

namespace hvdlite::launch {

enum class Allocator { kDefault, kJemalloc, kTcmalloc };

absl::StatusOr<Allocator> ParseAllocator(absl::string_view text);

// Path of the library, in LD_LIBRARY_PATH and the system's folders. NotFound
// says which package has it. `exists` tells whether a file is there.
absl::StatusOr<std::string> FindAllocator(
    Allocator allocator, const base::Environment& environment,
    const std::function<bool(const std::string& path)>& exists);

// Offers what the allocator reads; with a library, also sets LD_PRELOAD (what
// the user has there comes first). `huge_pages`: heaps of transparent huge
// pages, as far as the allocator knows them.
void AddAllocatorVariables(Allocator allocator, const std::string& library,
                           bool huge_pages, Variables& variables);

}  // namespace hvdlite::launch

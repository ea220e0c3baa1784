#include "tools/hvdliterun/plan/allocator.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hvdlite::launch {
namespace {

constexpr char kThreadCaches[] = "4294967296";

struct LibraryNames {
  std::vector<std::string> files;
  std::string package;
};

LibraryNames NamesOf(Allocator allocator) {
  if (allocator == Allocator::kJemalloc) {
    return {.files = {"libjemalloc.so.2", "libjemalloc.so"},
            .package = "libjemalloc2"};
  }
  return {.files = {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4",
                    "libtcmalloc_minimal.so", "libtcmalloc.so"},
          .package = "libtcmalloc-minimal4"};
}

}  // namespace

absl::StatusOr<Allocator> ParseAllocator(absl::string_view text) {
  if (text == "default") return Allocator::kDefault;
  if (text == "jemalloc") return Allocator::kJemalloc;
  if (text == "tcmalloc") return Allocator::kTcmalloc;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is none of default, jemalloc, tcmalloc"));
}

absl::StatusOr<std::string> FindAllocator(
    Allocator allocator, const base::Environment& environment,
    const std::function<bool(const std::string& path)>& exists) {
  const LibraryNames names = NamesOf(allocator);
  std::vector<std::string> folders = absl::StrSplit(
      environment.get("LD_LIBRARY_PATH").value_or(""), ':', absl::SkipEmpty());
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
        "/usr/local/lib64", "/usr/local/lib", "/usr/lib"}) {
    folders.emplace_back(folder);
  }
  for (const std::string& folder : folders) {
    for (const std::string& file : names.files) {
      std::string path = absl::StrCat(folder, "/", file);
      if (exists(path)) return path;
    }
  }
  return absl::NotFoundError(absl::StrCat(
      names.files.front(), " is not on this machine (Debian: ", names.package,
      "): install it, add its folder to LD_LIBRARY_PATH, or leave --alloc "
      "out"));
}

void AddAllocatorVariables(Allocator allocator, const std::string& library,
                           bool huge_pages, Variables& variables) {
  if (!library.empty()) {
    variables.AppendPath("LD_PRELOAD", library, "--alloc");
  }
  switch (allocator) {
    case Allocator::kDefault: {
      // No MALLOC_MMAP_THRESHOLD_: glibc before 2.35 refuses more than 32 MiB.
      variables.Offer("MALLOC_MMAP_MAX_", "0", "default");
      variables.Offer("MALLOC_TRIM_THRESHOLD_", "-1", "default");
      if (huge_pages) {
        variables.Offer("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1",
                        "--huge-pages");
      }
      break;
    }
    case Allocator::kJemalloc:
      // One arena for large blocks, cleaned up in the background, and hardly
      // ever: PyTorch's performance tuning guide.
      variables.Offer(
          "MALLOC_CONF",
          absl::StrCat("oversize_threshold:1,background_thread:true,"
                       "metadata_thp:auto,dirty_decay_ms:9000000000,"
                       "muzzy_decay_ms:9000000000",
                       huge_pages ? ",thp:always" : ""),
          "--alloc jemalloc");
      break;
    case Allocator::kTcmalloc:
      variables.Offer("TCMALLOC_RELEASE_RATE", "0", "--alloc tcmalloc");
      variables.Offer("TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES", kThreadCaches,
                      "--alloc tcmalloc");
      if (huge_pages) {
        variables.Note(
            "--huge-pages does nothing with tcmalloc: it takes the system's "
            "pages (/sys/kernel/mm/transparent_hugepage/enabled)");
      }
      break;
  }
}

}  // namespace hvdlite::launch

#include <sys/resource.h>

#include <array>
#include <cstddef>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/host_checks.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

constexpr size_t kBlockBytes = size_t{8} << 20;  // a tensor
constexpr size_t kBlocks = 4;
constexpr size_t kPageBytes = 4096;

std::string KeepMemoryRemedy(const std::string& allocator) {
  if (allocator == "glibc") {
    return "export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1";
  }
  if (allocator == "jemalloc") {
    return "export MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1,"
           "oversize_threshold:0";
  }
  if (allocator == "tcmalloc") return "export TCMALLOC_RELEASE_RATE=0";
  return "";
}

int64_t PageFaults() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

// Allocates, writes and frees blocks. Returns the number of page faults.
int64_t UseBlocks() {
  const int64_t before = PageFaults();
  std::array<char*, kBlocks> blocks = {};
  for (char*& block : blocks) {
    block = static_cast<char*>(std::malloc(kBlockBytes));
    if (block == nullptr) continue;
    for (size_t at = 0; at < kBlockBytes; at += kPageBytes) {
      const_cast<volatile char*>(block)[at] = 1;
    }
  }
  for (char* block : blocks) std::free(block);
  return PageFaults() - before;
}

}  // namespace

Finding JudgeMemoryReturn(const MemoryReturnFacts& facts) {
  const double share = facts.first_faults == 0
                           ? 0
                           : static_cast<double>(facts.second_faults) /
                                 static_cast<double>(facts.first_faults);
  const std::string what =
      absl::StrCat("malloc of ", facts.allocator, ": of ", facts.bytes >> 20,
                   " MiB of freed memory, ");
  if (facts.first_faults == 0 || share < 0.5) {
    return {.seen =
                absl::StrCat(what, "most was kept for the next allocation")};
  }
  return {.verdict = Verdict::kNote,
          .seen = absl::StrCat(
              what,
              "most was returned to the system: tensors cause page "
              "faults in every step"),
          .remedy = KeepMemoryRemedy(facts.allocator)};
}

absl::StatusOr<Findings> RunMemoryReturn(Session& session) {
  MemoryReturnFacts facts = {
      .allocator = AllocatorOf(support::LoadedLibraries()),
      .bytes = static_cast<int64_t>(kBlocks * kBlockBytes)};
  facts.first_faults = UseBlocks();
  facts.second_faults = UseBlocks();
  (void)session;
  return Findings{JudgeMemoryReturn(facts)};
}

}  // namespace hvdlite::doctor

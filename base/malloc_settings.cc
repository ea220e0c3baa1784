#include "base/malloc_settings.h"

#include <dlfcn.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hvdlite::base {
namespace {

constexpr absl::string_view kVariables[] = {
    "MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_"};
// The same settings in GLIBC_TUNABLES.
constexpr absl::string_view kTunables[] = {
    "glibc.malloc.mmap_max", "glibc.malloc.mmap_threshold",
    "glibc.malloc.trim_threshold", "glibc.malloc.top_pad"};

// Load address of the library or program that defines `function`; null if none.
const void* ObjectWith(const char* function) {
  Dl_info info = {};
  const void* const address = dlsym(RTLD_DEFAULT, function);
  if (address == nullptr || dladdr(address, &info) == 0) return nullptr;
  return info.dli_fbase;
}

}  // namespace

std::string WhyMallocIsKept(absl::string_view setting, bool is_glibc,
                            const Environment& environment) {
  if (setting == "keep") return "HVDLITE_MALLOC=keep";
  if (!is_glibc) return "it is not glibc's";
  for (const absl::string_view name : kVariables) {
    if (environment.get(name).has_value()) {
      return absl::StrCat(name, " is set");
    }
  }
  const std::string tunables = environment.get("GLIBC_TUNABLES").value_or("");
  for (const absl::string_view name : kTunables) {
    if (absl::StrContains(tunables, absl::StrCat(name, "="))) {
      return absl::StrCat("GLIBC_TUNABLES has ", name);
    }
  }
  return "";
}

bool MallocIsGlibc() {
  const void* const c_library = ObjectWith("gnu_get_libc_version");
  return c_library != nullptr && ObjectWith("malloc") == c_library;
}

bool KeepFreedMemory() {
#ifdef __GLIBC__
  return mallopt(M_MMAP_MAX, 0) == 1 && mallopt(M_TRIM_THRESHOLD, -1) == 1;
#else
  return false;
#endif
}

std::string TuneMalloc(absl::string_view setting,
                       const Environment& environment) {
  const std::string reason =
      WhyMallocIsKept(setting, MallocIsGlibc(), environment);
  if (!reason.empty()) {
    return absl::StrCat("malloc's settings are unchanged: ", reason);
  }
  if (!KeepFreedMemory()) {
    return "malloc cannot be configured to keep freed memory";
  }
  return "malloc keeps freed memory, which avoids page faults in every step; "
         "HVDLITE_MALLOC=keep turns this off";
}

}  // namespace hvdlite::base

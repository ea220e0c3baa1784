// What the processor can, and the kernels that OpenBLAS should take on it;
// lists of CPUs as Linux writes them ("0-3,8"); memory policies.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::support {

// Of the first processor of /proc/cpuinfo's text: "flags" of x86, "Features"
// of Arm.
std::set<std::string> CpuFlags(absl::string_view cpuinfo);

// Instructions of a processor with these flags that compute in bfloat16, as
// "avx512_bf16, amx_bf16"; empty: none, or none are known.
std::string Bfloat16Instructions(const std::set<std::string>& cpu_flags);

// Those that it would need, as "avx512_bf16 or amx_bf16", where it has none of
// them; else, and where nothing is known of it, empty.
std::string MissingBfloat16Instructions(const std::set<std::string>& cpu_flags);

// OpenBLAS chooses its kernels by the processor's model number; for a model
// newer than itself that may be those of a Pentium 4, which make matrix
// products four times slower than they could be. Returns the core type to ask
// for (OPENBLAS_CORETYPE) instead of `core`; empty if that one is good, and on
// Arm: an OpenBLAS that has kernels for SVE takes them by itself, and no core
// type gives them to one that has none. As tools/openblas_core, which is for
// shells.
std::string BetterOpenBlasCore(absl::string_view core,
                               const std::set<std::string>& cpu_flags);

// How many floats the kernels of an x86 core type compute with at once: 4, 8 or
// 16. Of others 8.
int FloatsOfOpenBlasCore(absl::string_view core);

// {0, 1, 2, 3, 8} -> "0-3,8". `numbers` in any order; an empty list is "".
std::string FormatCpuList(std::vector<int> numbers);

// The reverse, in ascending order. An error quotes what is no list.
absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view text);

// The CPUs that the calling thread may use, in ascending order.
std::vector<int> AllowedCpus();

// Binds the calling thread, and the threads and processes that it starts from
// now on, to `cpus`. Throws std::system_error if the system refuses.
void BindThread(const std::vector<int>& cpus);

// `cpus` cut into `shares` runs of neighbours, the first ones with one more
// where they cannot be equal. Throws InputError that names both numbers if
// there are more shares than CPUs.
std::vector<std::vector<int>> DivideCpus(const std::vector<int>& cpus,
                                         int64_t shares);

// The memory policy of a thread: which NUMA nodes its new pages come from. As
// get_mempolicy(2) tells it.
struct NumaPolicy {
  int mode = 0;  // MPOL_*, without flags
  std::vector<int> nodes = {};
};

// Of the calling thread. Unavailable where the kernel has none or a container
// forbids the question.
absl::StatusOr<NumaPolicy> ThisThreadsNumaPolicy();

// "default", "local", "preferred", "bind", "interleave" or "number 9". Kernels
// before 5.14 store `local` as MPOL_PREFERRED without nodes.
std::string NumaPolicyName(const NumaPolicy& policy);

}  // namespace hvdlite::support

// Instructions of a processor, and the OpenBLAS kernels that suit it. Also
// lists of CPUs as Linux writes them ("0-3,8"), and memory policies.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::support {

// Flags of the first processor in the text of /proc/cpuinfo: "flags" on x86,
// "Features" on Arm.
std::set<std::string> CpuFlags(absl::string_view cpuinfo);

// The bfloat16 instructions among these flags, such as "avx512_bf16, amx_bf16";
// empty: none, or unknown.
std::string Bfloat16Instructions(const std::set<std::string>& cpu_flags);

// Missing bfloat16 instructions, such as "avx512_bf16 or amx_bf16", if the
// processor has none; empty if it has some or the processor is unknown.
std::string MissingBfloat16Instructions(const std::set<std::string>& cpu_flags);

// OpenBLAS chooses kernels by the processor's model number. For a model newer
// than OpenBLAS these may be the kernels of a Pentium 4, which multiply
// matrices four times slower. Returns the better core type for
// OPENBLAS_CORETYPE; empty if `core` is good, and on Arm: an OpenBLAS with
// kernels for SVE selects them by itself. tools/openblas_core does the same for
// shells.
std::string BetterOpenBlasCore(absl::string_view core,
                               const std::set<std::string>& cpu_flags);

// Vector width, in floats, of the kernels of an x86 core type: 4, 8 or 16.
// Otherwise 8.
int FloatsOfOpenBlasCore(absl::string_view core);

// {0, 1, 2, 3, 8} -> "0-3,8". `numbers` in any order; an empty list is "".
std::string FormatCpuList(std::vector<int> numbers);

// The reverse, in ascending order. An error quotes the invalid range.
absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view text);

// The CPUs that the calling thread may use, in ascending order.
std::vector<int> AllowedCpus();

// Binds the calling thread to `cpus`, and also threads and processes that it
// starts later. Throws std::system_error if the system refuses.
void BindThread(const std::vector<int>& cpus);

// Divides `cpus` into `shares` runs of neighbours; the first ones get one more
// if the division is not even. Throws InputError with both numbers if there are
// more shares than CPUs.
std::vector<std::vector<int>> DivideCpus(const std::vector<int>& cpus,
                                         int64_t shares);

// A thread's memory policy: the NUMA nodes from which it gets new pages, as
// from get_mempolicy(2).
struct NumaPolicy {
  int mode = 0;  // MPOL_*, without flags
  std::vector<int> nodes = {};
};

// The policy of the calling thread. Unavailable if the kernel has no policies
// or a container forbids the call.
absl::StatusOr<NumaPolicy> ThisThreadsNumaPolicy();

// "default", "local", "preferred", "bind", "interleave" or "number 9". Kernels
// before 5.14 store `local` as MPOL_PREFERRED without nodes.
std::string NumaPolicyName(const NumaPolicy& policy);

}  // namespace hvdlite::support

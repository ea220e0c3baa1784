#include "tools/support/numa_policy.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace hvdlite::base {
namespace {

constexpr int kMaxNodes = 1024;
constexpr int kBits = 8 * sizeof(unsigned long);
constexpr int kModeBits = 0xff;  // flags lie above

}  // namespace

absl::StatusOr<NumaPolicy> ThisThreadsNumaPolicy() {
  int mode = MPOL_DEFAULT;
  std::array<unsigned long, kMaxNodes / kBits> mask = {};
  if (syscall(SYS_get_mempolicy, &mode, mask.data(), kMaxNodes, nullptr, 0UL) !=
      0) {
    return absl::UnavailableError(
        absl::StrCat("cannot read the memory policy: ", std::strerror(errno)));
  }
  NumaPolicy policy = {.mode = mode & kModeBits};
  for (int node = 0; node < kMaxNodes; ++node) {
    if ((mask[static_cast<size_t>(node / kBits)] >> (node % kBits)) & 1UL) {
      policy.nodes.push_back(node);
    }
  }
  return policy;
}

std::string NumaPolicyName(const NumaPolicy& policy) {
  switch (policy.mode) {
    case MPOL_DEFAULT:
      return "default";
    case MPOL_PREFERRED:
      return policy.nodes.empty() ? "local" : "preferred";
    case MPOL_BIND:
      return "bind";
    case MPOL_INTERLEAVE:
      return "interleave";
    case MPOL_LOCAL:
      return "local";
    default:
      return absl::StrCat("number ", policy.mode);
  }
}

}  // namespace hvdlite::base

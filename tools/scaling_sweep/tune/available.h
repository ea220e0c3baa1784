// Finds which options of a search this machine supports.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "support/libraries.h"
#include "support/machine.h"
#include "tools/scaling_sweep/run/sweep.pb.h"
#include "tools/scaling_sweep/tune/trials.h"
#include "tools/scaling_sweep/tune/tuning_space.h"

namespace hvdlite::scaling_sweep {

// An option that is not tried.
struct LeftOut {
  std::string option;  // "allocator=jemalloc"
  std::string reason;  // with the package to install, if known

  bool operator==(const LeftOut&) const = default;
};

struct AvailableDimensions {
  Dimensions dimensions;  // with at least two options left
  std::vector<LeftOut> left_out;
};

// Facts about the machine, besides the launcher's answers.
struct Premises {
  // The program's libraries; nullopt: not known, for example of a script.
  std::optional<std::vector<support::Library>> libraries = {};
  std::function<bool(const std::string& path)> exists;
  support::SystemFiles files = support::SystemFiles();
};

// Removes options that the launcher refuses (such as an allocator that is not
// installed), that need more cores than there are, that equal the defaults,
// that preload a missing file, or that OpenBLAS or the kernel do not support.
// Options that cannot be checked, for example on other hosts, stay. Cancelled
// as in TrialRunner::Ask.
absl::StatusOr<AvailableDimensions> Available(const Spec& spec,
                                              const Dimensions& dimensions,
                                              const Premises& premises,
                                              TrialRunner& runner);

}  // namespace hvdlite::scaling_sweep

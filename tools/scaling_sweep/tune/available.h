// What of a search's options this machine has.
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
  std::string reason;  // with what to install, where that is known

  bool operator==(const LeftOut&) const = default;
};

struct AvailableDimensions {
  Dimensions dimensions;  // that still have a choice
  std::vector<LeftOut> left_out;
};

// What is known of the machine, beside what the launcher answers.
struct Premises {
  // Of the program; nullopt: nobody knows, as of a script.
  std::optional<std::vector<support::Library>> libraries = {};
  std::function<bool(const std::string& path)> exists;
  support::SystemFiles files = support::SystemFiles();
};

// Less the options that the launcher refuses, as an allocator that is not
// installed; that need more cores than there are; that do the same as the
// defaults; that preload a file that is not there; and that ask OpenBLAS or the
// kernel for what they cannot give. What cannot be known, as on other hosts, is
// tried. Cancelled as TrialRunner::Ask.
absl::StatusOr<AvailableDimensions> Available(const Spec& spec,
                                              const Dimensions& dimensions,
                                              const Premises& premises,
                                              TrialRunner& runner);

}  // namespace hvdlite::scaling_sweep

// Judges MPI: its thread level, whether ranks find each other, and what its
// messages travel over.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/session.h"
#include "tools/support/libraries.h"

namespace hvdlite::doctor {

// `launcher`: of CheckLauncher(); `settings`: of AgreeOnConfig().
std::vector<Finding> JudgeMpi(const std::optional<MpiFacts>& mpi, int ranks,
                              const absl::Status& launcher,
                              const absl::Status& settings);

struct TransportFacts {
  std::string mpi_library;
  // Components that Open MPI kept: "pml" (messages), "btl", "mtl" (bytes).
  std::vector<std::string> pml;
  std::vector<std::string> btl;
  std::vector<std::string> mtl;
  int hosts = 1;
  std::vector<std::string> fast_devices;  // of UCX: InfiniBand and the like
};

// From names such as "mca_pml_ucx.so".
TransportFacts TransportsIn(absl::Span<const Library> loaded);
Finding JudgeTransports(const TransportFacts& facts);

}  // namespace hvdlite::doctor

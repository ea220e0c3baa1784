// Session: what every check may look at.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/environment.h"
#include "collective/communicator.h"
#include "collective/topology.h"
#include "tools/doctor/blas_library.h"
#include "tools/support/libraries.h"
#include "tools/support/system_files.h"

namespace hvdlite::doctor {

// What MPI said when it was started.
struct MpiFacts {
  std::string library;       // "Open MPI v4.1.4"
  std::string thread_level;  // the highest that it offers
  // Why hvdlite cannot use it; empty: it can.
  std::string error = "";
};

struct Session {
  collective::Communicator& communicator;
  const collective::Topology& topology;
  base::Environment environment;
  SystemFiles files;
  // Before any library bound the main thread.
  std::vector<int> allowed_cpus;
  std::string program = "";  // that --program names; empty: none
  // Of `program`, or of this process.
  std::vector<Library> libraries = {};
  LoadedBlas blas = {};
  std::optional<MpiFacts> mpi = std::nullopt;  // nullopt: MPI is not used
};

}  // namespace hvdlite::doctor

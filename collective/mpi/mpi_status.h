// MPI's codes as text and statuses.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hvdlite::collective {

// MPI's own words for a return code. MPI must be initialised.
std::string MpiErrorText(int return_code);

// "MPI_THREAD_SERIALIZED" for MPI's constant of that name.
std::string MpiThreadLevelName(int level);

// OK for MPI_SUCCESS, else Unavailable: "MPI_Allreduce failed on rank 3: ...".
// `call` is the name of the MPI function.
absl::Status MpiCallStatus(int return_code, absl::string_view call, int rank);

}  // namespace hvdlite::collective

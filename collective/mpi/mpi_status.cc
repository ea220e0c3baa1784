#include "collective/mpi/mpi_status.h"

#include <mpi.h>

#include "absl/strings/str_cat.h"

namespace hvdlite::collective {

std::string MpiErrorText(int return_code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(return_code, text, &length) != MPI_SUCCESS) {
    return absl::StrCat("MPI error ", return_code);
  }
  return std::string(text, length);
}

std::string MpiThreadLevelName(int level) {
  switch (level) {
    case MPI_THREAD_SINGLE:
      return "MPI_THREAD_SINGLE";
    case MPI_THREAD_FUNNELED:
      return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED:
      return "MPI_THREAD_SERIALIZED";
    case MPI_THREAD_MULTIPLE:
      return "MPI_THREAD_MULTIPLE";
  }
  return absl::StrCat("thread level ", level);
}

absl::Status MpiCallStatus(int return_code, absl::string_view call, int rank) {
  if (return_code == MPI_SUCCESS) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(call, " failed on rank ", rank,
                                             ": ", MpiErrorText(return_code)));
}

}  // namespace hvdlite::collective

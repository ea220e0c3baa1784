#include "collective/mpi/mpi_library.h"

#include <mpi.h>

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/environment.h"

namespace hvdlite::collective {

std::string MpiLibraryName() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text = {};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return MpiLibraryNameIn(text.data());  // Open MPI counts the end
}

std::string MpiLibraryNameIn(const std::string& version) {
  // "Open MPI v4.1.4, package: ..."; of a table "MPICH Version:\t4.0.2\n...".
  const absl::string_view line = absl::StripAsciiWhitespace(
      absl::string_view(version).substr(0, version.find_first_of(",\n")));
  const size_t colon = line.find(':');
  absl::string_view name = absl::StripAsciiWhitespace(line.substr(0, colon));
  if (colon == absl::string_view::npos ||
      !absl::ConsumeSuffix(&name, " Version")) {
    return std::string(line);
  }
  return absl::StrCat(absl::StripAsciiWhitespace(name), " ",
                      absl::StripAsciiWhitespace(line.substr(colon + 1)));
}

void AskMpiToYield() {
  // Open MPI alone reads it.
  base::SetDefaultVariable("OMPI_MCA_mpi_yield_when_idle", "1");
}

bool MpiYields() {
#ifdef OPEN_MPI
  return true;
#else
  return false;
#endif
}

}  // namespace hvdlite::collective

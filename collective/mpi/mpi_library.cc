#include "collective/mpi/mpi_library.h"

#include <mpi.h>

#include <array>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/environment.h"
#include "collective/mpi/mpi_calls.h"

namespace hvdlite::collective {
namespace {

// What follows "WORDS:" in a line of a table; empty where there is none.
absl::string_view ValueOf(absl::string_view table, absl::string_view words) {
  for (const absl::string_view line : absl::StrSplit(table, '\n')) {
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) continue;
    if (absl::EndsWith(absl::StripAsciiWhitespace(line.substr(0, colon)),
                       words)) {
      return absl::StripAsciiWhitespace(line.substr(colon + 1));
    }
  }
  return "";
}

bool SpansHosts() {
  MPI_Comm host = MPI_COMM_NULL;
  if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, /*key=*/0,
                          MPI_INFO_NULL, &host) != MPI_SUCCESS) {
    return true;
  }
  int on_host = 0;
  int all = 0;
  MPI_Comm_size(host, &on_host);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  MPI_Comm_free(&host);
  return on_host < all;
}

}  // namespace

std::string MpiLibraryName() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text = {};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  return MpiLibraryNameIn(text.data());  // Open MPI counts the end
}

std::string MpiLibraryNameIn(absl::string_view version) {
  // "Open MPI v4.1.4, package: ...", or a table: "MPICH Version:\t4.0.2\n...".
  const absl::string_view line = absl::StripAsciiWhitespace(
      version.substr(0, version.find_first_of(",\n")));
  absl::string_view name =
      absl::StripTrailingAsciiWhitespace(line.substr(0, line.find(':')));
  if (name.size() == line.size() || !absl::ConsumeSuffix(&name, "Version")) {
    return std::string(line);
  }
  const absl::string_view device = ValueOf(version, "Device");
  return absl::StrCat(name, ValueOf(line, "Version"),
                      device.empty() ? "" : absl::StrCat(" (", device, ")"));
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

int FinalizeMpi() {
  // Nobody tells when all have left the barrier, but they will have.
  constexpr absl::Duration kQuiet = absl::Milliseconds(500);
  if (FinalizeNeedsQuiet(MpiLibraryName()) && SpansHosts()) {
    MpiBarrier(MPI_COMM_WORLD);
    absl::SleepFor(kQuiet);
  }
  return MPI_Finalize();
}

bool FinalizeNeedsQuiet(absl::string_view library_name) {
  return absl::StrContains(library_name, "(ch4:ucx)") &&
         (absl::StartsWith(library_name, "MPICH 4.0") ||
          absl::StartsWith(library_name, "MPICH 4.1"));
}

}  // namespace hvdlite::collective

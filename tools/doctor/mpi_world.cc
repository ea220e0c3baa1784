#include <mpi.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/mpi/mpi_communicator.h"
#include "collective/mpi/mpi_library.h"
#include "tools/doctor/world.h"

namespace hvdlite::doctor {
namespace {

class MpiInspectedRanks final : public InspectedRanks {
 public:
  ~MpiInspectedRanks() override {
    communicator.reset();
    collective::FinalizeMpi();
  }

  std::unique_ptr<collective::MpiSession> session;
};

}  // namespace

absl::StatusOr<std::unique_ptr<InspectedRanks>> StartWithMpi() {
  // As in MpiSession, but MPI is initialized first, to see its thread level.
  collective::AskMpiToYield();
  int level = MPI_THREAD_SINGLE;
  const int code =
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
  if (code != MPI_SUCCESS) {
    return absl::InternalError(
        absl::StrCat("MPI_Init_thread failed with code ", code,
                     "; use --no-mpi to run without MPI"));
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  auto world = std::make_unique<MpiInspectedRanks>();
  MpiFacts facts = {.library = collective::MpiLibraryName(),
                    .thread_level = collective::MpiThreadLevelName(level)};
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  world->speaks = rank == 0;
  if (level < MPI_THREAD_SERIALIZED) {
    facts.error = absl::StrCat("it offers ", facts.thread_level,
                               ", but hvdlite needs MPI_THREAD_SERIALIZED");
    std::unique_ptr<InspectedRanks> alone = StartAlone();
    world->communicator = std::move(alone->communicator);
    world->topology = std::move(alone->topology);
  } else {
    HVDLITE_ASSIGN_OR_RETURN(world->session, collective::MpiSession::Start());
    HVDLITE_ASSIGN_OR_RETURN(world->communicator,
                             collective::CreateMpiCommunicator());
    world->topology = world->session->topology();
  }
  world->mpi = std::move(facts);
  return world;
}

}  // namespace hvdlite::doctor

#include "collective/mpi/mpi_world.h"

#include <mpi.h>

#include <set>
#include <utility>

#include "base/environment.h"
#include "base/status_macros.h"
#include "collective/mpi/mpi_calls.h"

#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

namespace hvdlite::collective {
namespace {

#if defined(OMPI_HAVE_MPI_EXT_FTMPI)

constexpr bool kHasUlfm = true;

void Revoke(MPI_Comm communicator) { MPIX_Comm_revoke(communicator); }

int Shrink(MPI_Comm communicator, MPI_Comm* rest) {
  return MPIX_Comm_shrink(communicator, rest);
}

int GetFailed(MPI_Comm communicator, MPI_Group* failed) {
  return MPIX_Comm_get_failed(communicator, failed);
}

#else

constexpr bool kHasUlfm = false;

void Revoke(MPI_Comm) {}

int Shrink(MPI_Comm, MPI_Comm*) { return MPI_ERR_UNSUPPORTED_OPERATION; }

int GetFailed(MPI_Comm, MPI_Group*) { return MPI_ERR_UNSUPPORTED_OPERATION; }

#endif

// No message has it.
constexpr int kNoTag = 7;

// MPI is one per process, and so is this.
struct State {
  MPI_Comm world = MPI_COMM_NULL;  // null: MPI_COMM_WORLD
  bool abandoned = false;
  bool has_lost_ranks = false;
  std::set<MpiHandle> tracked;
};

State& ThisProcess() {
  static auto* const state = new State;
  return *state;
}

// Takes the place of the world, whose errors are to be returned.
absl::Status Replace(int return_code, const char* call, MPI_Comm communicator) {
  HVDLITE_RETURN_IF_ERROR(MpiCallStatus(return_code, call, /*rank=*/-1));
  ThisProcess().world = communicator;
  return MpiCallStatus(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN),
                       "MPI_Comm_set_errhandler", /*rank=*/-1);
}

}  // namespace

MPI_Comm MpiWorld() {
  const MPI_Comm world = ThisProcess().world;
  return world == MPI_COMM_NULL ? MPI_COMM_WORLD : world;
}

MpiHandle MpiWorldHandle() { return MPI_Comm_c2f(MpiWorld()); }

bool MpiOutlivesRanks() {
  return kHasUlfm && base::ProcessEnvironment()
                             .get("OMPI_MCA_mpi_ft_enable")
                             .value_or("0") == "1";
}

absl::Status BeginMpiWorld() {
  if (!MpiOutlivesRanks()) return absl::OkStatus();
  State& state = ThisProcess();
  MPI_Comm communicator = MPI_COMM_NULL;
  if (state.world == MPI_COMM_NULL) {
    const int return_code = MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    return Replace(return_code, "MPI_Comm_dup", communicator);
  }
  if (!std::exchange(state.abandoned, false)) return absl::OkStatus();
  RevokeMpiWorld();
  state.tracked.clear();
  int ranks_before = 0;
  MPI_Comm_size(state.world, &ranks_before);
  const int return_code = Shrink(state.world, &communicator);
  HVDLITE_RETURN_IF_ERROR(
      Replace(return_code, "MPIX_Comm_shrink", communicator));
  int ranks = 0;
  MPI_Comm_size(state.world, &ranks);
  if (ranks < ranks_before) state.has_lost_ranks = true;
  return absl::OkStatus();
}

void AbandonMpiWorld() { ThisProcess().abandoned = true; }

bool MpiHasLostRanks() { return ThisProcess().has_lost_ranks; }

std::vector<int> DeadMpiRanks() {
  std::vector<int> ranks;
  if (!MpiOutlivesRanks()) return ranks;
  // MPI hears of it while it makes progress.
  int arrived = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, kNoTag, MpiWorld(), &arrived, MPI_STATUS_IGNORE);
  MPI_Group failed = MPI_GROUP_NULL;
  if (GetFailed(MpiWorld(), &failed) != MPI_SUCCESS) return ranks;
  int count = 0;
  MPI_Group_size(failed, &count);
  MPI_Group world = MPI_GROUP_NULL;
  if (count > 0 && MPI_Comm_group(MpiWorld(), &world) == MPI_SUCCESS) {
    std::set<int> sorted;
    for (int i = 0; i < count; ++i) {
      int rank = MPI_UNDEFINED;
      MPI_Group_translate_ranks(failed, 1, &i, world, &rank);
      if (rank != MPI_UNDEFINED) sorted.insert(rank);
    }
    ranks.assign(sorted.begin(), sorted.end());
    MPI_Group_free(&world);
  }
  MPI_Group_free(&failed);
  return ranks;
}

void TrackMpiCommunicator(MpiHandle communicator) {
  ThisProcess().tracked.insert(communicator);
}

void ForgetMpiCommunicator(MpiHandle communicator) {
  ThisProcess().tracked.erase(communicator);
}

void RevokeMpiWorld() {
  if (!MpiOutlivesRanks()) return;
  Revoke(MpiWorld());
  for (const MpiHandle communicator : ThisProcess().tracked) {
    Revoke(MPI_Comm_f2c(static_cast<MPI_Fint>(communicator)));
  }
}

}  // namespace hvdlite::collective

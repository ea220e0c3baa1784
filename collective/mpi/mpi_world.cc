#include "collective/mpi/mpi_world.h"

#include <mpi.h>

#include <set>

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

bool IsRevoked(MPI_Comm communicator) {
  int revoked = 0;
  MPIX_Comm_is_revoked(communicator, &revoked);
  return revoked != 0;
}

int Shrink(MPI_Comm communicator, MPI_Comm* rest) {
  return MPIX_Comm_shrink(communicator, rest);
}

int GetFailed(MPI_Comm communicator, MPI_Group* failed) {
  return MPIX_Comm_get_failed(communicator, failed);
}

#else

constexpr bool kHasUlfm = false;

void Revoke(MPI_Comm) {}

bool IsRevoked(MPI_Comm) { return false; }

int Shrink(MPI_Comm, MPI_Comm*) { return MPI_ERR_UNSUPPORTED_OPERATION; }

int GetFailed(MPI_Comm, MPI_Group*) { return MPI_ERR_UNSUPPORTED_OPERATION; }

#endif

// No message has it.
constexpr int kNoTag = 7;

// MPI is one per process, and so is this.
struct State {
  MPI_Comm all = MPI_COMM_NULL;    // null: MPI_COMM_WORLD
  MPI_Comm given = MPI_COMM_NULL;  // by the program, for one world; or null
  bool abandoned = false;
  bool has_lost_ranks = false;
  std::set<MpiHandle> tracked;
};

State& ThisProcess() {
  static auto* const state = new State;
  return *state;
}

// What `call` has made takes the place of `world`; its errors are to be
// returned.
absl::Status Replace(MPI_Comm& world, int return_code, const char* call,
                     MPI_Comm communicator) {
  HVDLITE_RETURN_IF_ERROR(MpiCallStatus(return_code, call, /*rank=*/-1));
  world = communicator;
  return MpiCallStatus(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN),
                       "MPI_Comm_set_errhandler", /*rank=*/-1);
}

}  // namespace

MPI_Comm MpiWorld() {
  const State& state = ThisProcess();
  if (state.given != MPI_COMM_NULL) return state.given;
  return state.all != MPI_COMM_NULL ? state.all : MPI_COMM_WORLD;
}

MpiHandle MpiWorldHandle() { return MPI_Comm_c2f(MpiWorld()); }

bool MpiOutlivesRanks() {
  static const bool outlives =
      kHasUlfm &&
      base::ProcessEnvironment().get("OMPI_MCA_mpi_ft_enable").value_or("0") ==
          "1";
  return outlives;
}

absl::Status BeginMpiWorld(const MpiRanks& wanted) {
  State& state = ThisProcess();
  MPI_Comm made = MPI_COMM_NULL;
  const bool goes_on = wanted.survivors || (!wanted.communicator.has_value() &&
                                            state.given == MPI_COMM_NULL);
  if (goes_on && state.abandoned && MpiOutlivesRanks()) {
    RevokeMpiWorld();
    state.tracked.clear();
    int ranks_before = 0;
    MPI_Comm_size(MpiWorld(), &ranks_before);
    const int return_code = Shrink(MpiWorld(), &made);
    HVDLITE_RETURN_IF_ERROR(
        Replace(state.given != MPI_COMM_NULL ? state.given : state.all,
                return_code, "MPIX_Comm_shrink", made));
    state.abandoned = false;
    int ranks = 0;
    MPI_Comm_size(MpiWorld(), &ranks);
    if (ranks < ranks_before) state.has_lost_ranks = true;
    return absl::OkStatus();
  }
  state.abandoned = false;
  state.given = MPI_COMM_NULL;
  if (wanted.communicator.has_value()) {
    const int return_code = MPI_Comm_dup(
        MPI_Comm_f2c(static_cast<MPI_Fint>(*wanted.communicator)), &made);
    return Replace(state.given, return_code, "MPI_Comm_dup", made);
  }
  if (!MpiOutlivesRanks() || state.all != MPI_COMM_NULL) {
    return absl::OkStatus();
  }
  const int return_code = MPI_Comm_dup(MPI_COMM_WORLD, &made);
  return Replace(state.all, return_code, "MPI_Comm_dup", made);
}

void EndMpiWorld() {
  State& state = ThisProcess();
  if (state.given != MPI_COMM_NULL) MPI_Comm_free(&state.given);
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

bool IsMpiWorldRevoked() { return MpiOutlivesRanks() && IsRevoked(MpiWorld()); }

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

// Starts and ends MPI in a way of its own: usage, mpi_life_test CASE.
#include <mpi.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "collective/mpi/mpi_communicator.h"
#include "tests/collective/mpi/check.h"

namespace hvdlite::testing {
namespace {

using collective::CreateMpiCommunicator;
using collective::MpiSession;

bool IsFinalized() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized != 0;
}

void InitThread(int wanted) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, wanted, &level);
  Check(level == wanted, "MPI gives the level that was asked for");
}

void CheckRefused(const absl::Status& status, const std::string& what) {
  Check(absl::IsFailedPrecondition(status), what + ": " + status.ToString());
}

std::unique_ptr<MpiSession> Start() {
  auto session = MpiSession::Start();
  Check(session.ok(), session.status().ToString());
  return *std::move(session);
}

std::unique_ptr<collective::Communicator> NewCommunicator() {
  auto communicator = CreateMpiCommunicator();
  Check(communicator.ok(), communicator.status().ToString());
  return *std::move(communicator);
}

// An application that initialises MPI with MPI_THREAD_FUNNELED gets an error
// that says what to do.
void RunFunneled() {
  InitThread(MPI_THREAD_FUNNELED);
  const absl::Status status = MpiSession::Start().status();
  CheckRefused(status, "Start refuses");
  const std::string message(status.message());
  for (const char* part : {"MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
                           "call MPI_Init_thread"}) {
    Check(message.find(part) != std::string::npos,
          std::string(part) + " is in: " + message);
  }
  Check(!IsFinalized(), "MPI is still the application's");
  MPI_Finalize();
}

// An application that initialises MPI with MPI_THREAD_SERIALIZED shares it, and
// finalizes it itself, even before the communicator is gone.
void RunSerialized() {
  InitThread(MPI_THREAD_SERIALIZED);
  const auto session = Start();
  Check(session->application_owns_mpi(), "the application owns MPI");
  auto communicator = NewCommunicator();
  Check(communicator->Barrier().ok(), "the barrier works");
  Check(session->Finalize().ok(), "Finalize succeeds");
  Check(!IsFinalized(), "Finalize leaves the application's MPI alone");
  MPI_Finalize();
  communicator.reset();
  CheckRefused(MpiSession::Start().status(),
               "Start refuses once MPI is finalized");
}

// A session that initialises MPI finalizes it, once.
void RunOwner() {
  CheckRefused(CreateMpiCommunicator().status(),
               "there is no communicator before MPI is initialised");
  const auto session = Start();
  Check(!session->application_owns_mpi(), "the session owns MPI");
  Check(session->topology().size == 2, "two ranks");
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  Check(level >= MPI_THREAD_SERIALIZED, "the thread level is SERIALIZED");
  Check(NewCommunicator()->Barrier().ok(), "the barrier works");
  // These outlive MPI, which must do no harm.
  const auto late = NewCommunicator();
  const auto late_subgroup = late->CreateSubgroup({0, 1}, /*tag=*/0);
  Check(late_subgroup.ok(), late_subgroup.status().ToString());
  Check(session->Finalize().ok(), "Finalize succeeds");
  Check(IsFinalized(), "Finalize finalizes MPI");
  Check(session->Finalize().ok(), "Finalize may be called again");
  CheckRefused(MpiSession::Start().status(), "Start refuses a second time");
  CheckRefused(CreateMpiCommunicator().status(),
               "there is no communicator after MPI is finalized");
}

// One rank's Abort ends the other, which waits for it.
void RunAbort() {
  const auto session = Start();
  const auto communicator = NewCommunicator();
  if (session->topology().rank == 1) session->Abort(7);
  (void)communicator->Barrier();
}

// Prints, on rank 0, which hosts the ranks are on.
void PrintHosts() {
  const auto session = Start();
  const collective::Topology& topology = session->topology();
  for (int rank = 0; topology.rank == 0 && rank < topology.size; ++rank) {
    const auto index = static_cast<size_t>(rank);
    std::printf("rank %d: host %d of %d, %s\n", rank,
                topology.cross_rank_of_rank[index], topology.cross_size,
                topology.host_of_rank[index].c_str());
  }
  std::fflush(stdout);
  Check(session->Finalize().ok(), "Finalize succeeds");
}

const std::map<std::string, void (*)()> kCases = {{"funneled", RunFunneled},
                                                  {"serialized", RunSerialized},
                                                  {"owner", RunOwner},
                                                  {"abort", RunAbort},
                                                  {"hosts", PrintHosts}};

}  // namespace
}  // namespace hvdlite::testing

int main(int argc, char** argv) {
  hvdlite::testing::Check(argc == 2, "one case is named");
  hvdlite::testing::kCases.at(argv[1])();
  return 0;
}

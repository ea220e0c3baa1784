#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "base/status_macros.h"
#include "collective/mpi/mpi_calls.h"
#include "collective/mpi/mpi_communicator.h"
#include "collective/mpi/mpi_library.h"
#include "collective/mpi/mpi_world.h"

namespace hvdlite::collective {
namespace {

// Internal, naming the MPI function, unless `return_code` is MPI_SUCCESS.
absl::Status InternalUnlessSuccess(int return_code, absl::string_view call) {
  if (return_code == MPI_SUCCESS) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(call, " failed: ", MpiErrorText(return_code)));
}

// FailedPrecondition unless the level that the application got from MPI will
// do.
absl::Status CheckApplicationsThreadLevel() {
  int level = MPI_THREAD_SINGLE;
  HVDLITE_RETURN_IF_ERROR(
      InternalUnlessSuccess(MPI_Query_thread(&level), "MPI_Query_thread"));
  if (level >= MPI_THREAD_SERIALIZED) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the application has initialised MPI with ", MpiThreadLevelName(level),
      ", but MPI_THREAD_SERIALIZED is needed: call MPI_Init_thread with "
      "MPI_THREAD_SERIALIZED (MPI_THREAD_MULTIPLE if the application "
      "communicates itself) instead of MPI_Init, or leave initialising MPI to "
      "hvdlite"));
}

// Whether hvdlite has initialised MPI in this process, not the application.
bool initialized_here = false;

absl::Status Initialize() {
  AskMpiToYield();
  int level = MPI_THREAD_SINGLE;
  const int return_code =
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  if (return_code != MPI_SUCCESS) {
    return absl::InternalError(
        absl::StrCat("MPI_Init_thread failed with code ", return_code));
  }
  if (level < MPI_THREAD_SERIALIZED) {
    MPI_Finalize();
    return absl::FailedPreconditionError(absl::StrCat(
        "this MPI library offers no more than ", MpiThreadLevelName(level),
        ", but MPI_THREAD_SERIALIZED is needed: use one that is built with "
        "thread support"));
  }
  initialized_here = true;
  return InternalUnlessSuccess(
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
      "MPI_Comm_set_errhandler");
}

// Those that a rank waits for itself at the roll call: each has as many below
// it, by rank.
constexpr int kRollCallArity = 8;

// Comes back once all ranks have come here. Unlike a collective call this tells
// `on_stage` which ranks are awaited: every rank meets those below it in a
// tree, then the one above it, in a communicator for the two, since messages in
// MPI_COMM_WORLD might be taken by the application. Collective.
absl::Status CallTheRoll(const MpiSession::OnStage& on_stage) {
  int rank = 0;
  int size = 0;
  HVDLITE_RETURN_IF_ERROR(
      InternalUnlessSuccess(MPI_Comm_rank(MpiWorld(), &rank), "MPI_Comm_rank"));
  HVDLITE_RETURN_IF_ERROR(
      InternalUnlessSuccess(MPI_Comm_size(MpiWorld(), &size), "MPI_Comm_size"));
  MPI_Group world = MPI_GROUP_NULL;
  HVDLITE_RETURN_IF_ERROR(InternalUnlessSuccess(
      MPI_Comm_group(MpiWorld(), &world), "MPI_Comm_group"));
  const auto wait_for = [&](int other, bool has_others_behind) {
    on_stage(
        "the check that all ranks have started",
        absl::StrCat("rank ", other,
                     has_others_behind ? absl::StrCat(", or a rank that rank ",
                                                      other, " waits for,")
                                       : "",
                     " to call hvdlite::init()"));
  };
  const auto meet = [&](int other) -> absl::StatusOr<MPI_Comm> {
    const int both[] = {std::min(rank, other), std::max(rank, other)};
    MPI_Group pair = MPI_GROUP_NULL;
    HVDLITE_RETURN_IF_ERROR(InternalUnlessSuccess(
        MPI_Group_incl(world, 2, both, &pair), "MPI_Group_incl"));
    MPI_Comm communicator = MPI_COMM_NULL;
    const int return_code = MPI_Comm_create_group(MpiWorld(), pair,
                                                  /*tag=*/0, &communicator);
    MPI_Group_free(&pair);
    HVDLITE_RETURN_IF_ERROR(
        InternalUnlessSuccess(return_code, "MPI_Comm_create_group"));
    TrackMpiCommunicator(MPI_Comm_c2f(communicator));
    HVDLITE_RETURN_IF_ERROR(
        InternalUnlessSuccess(MpiBarrier(communicator), "MPI_Barrier"));
    return communicator;
  };
  // Once all have met at rank 0.
  const auto part = [](MPI_Comm both) {
    const int return_code = MpiBarrier(both);
    ForgetMpiCommunicator(MPI_Comm_c2f(both));
    MPI_Comm_free(&both);
    return InternalUnlessSuccess(return_code, "MPI_Barrier");
  };
  std::vector<MPI_Comm> below;
  const int64_t first = int64_t{rank} * kRollCallArity + 1;
  for (int64_t other = first;
       other < std::min<int64_t>(first + kRollCallArity, size); ++other) {
    wait_for(static_cast<int>(other), other * kRollCallArity + 1 < size);
    HVDLITE_ASSIGN_OR_RETURN(below.emplace_back(),
                             meet(static_cast<int>(other)));
  }
  if (rank > 0) {
    const int above = (rank - 1) / kRollCallArity;
    wait_for(above, /*has_others_behind=*/size > 2);
    HVDLITE_ASSIGN_OR_RETURN(const MPI_Comm both, meet(above));
    HVDLITE_RETURN_IF_ERROR(part(both));
  }
  for (const MPI_Comm both : below) HVDLITE_RETURN_IF_ERROR(part(both));
  MPI_Group_free(&world);
  return absl::OkStatus();
}

// The lowest world rank among those that share memory with this one.
absl::StatusOr<int> LowestRankOfThisHost(int rank) {
  MPI_Comm host = MPI_COMM_NULL;
  HVDLITE_RETURN_IF_ERROR(InternalUnlessSuccess(
      MPI_Comm_split_type(MpiWorld(), MPI_COMM_TYPE_SHARED, /*key=*/rank,
                          MPI_INFO_NULL, &host),
      "MPI_Comm_split_type"));
  int lowest = rank;
  const int return_code =
      MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, host);
  MPI_Comm_free(&host);
  HVDLITE_RETURN_IF_ERROR(InternalUnlessSuccess(return_code, "MPI_Allreduce"));
  return lowest;
}

// What each rank has given. Collective.
absl::StatusOr<std::vector<uint64_t>> OfEveryRank(uint64_t value, int size) {
  std::vector<uint64_t> values(static_cast<size_t>(size));
  HVDLITE_RETURN_IF_ERROR(InternalUnlessSuccess(
      MPI_Allgather(&value, 1, MPI_UINT64_T, values.data(), 1, MPI_UINT64_T,
                    MpiWorld()),
      "MPI_Allgather"));
  return values;
}

// Collective.
absl::StatusOr<Topology> DiscoverTopology() {
  int rank = 0;
  int size = 0;
  HVDLITE_RETURN_IF_ERROR(
      InternalUnlessSuccess(MPI_Comm_rank(MpiWorld(), &rank), "MPI_Comm_rank"));
  HVDLITE_RETURN_IF_ERROR(
      InternalUnlessSuccess(MPI_Comm_size(MpiWorld(), &size), "MPI_Comm_size"));

  HVDLITE_ASSIGN_OR_RETURN(const int lowest, LowestRankOfThisHost(rank));
  std::vector<int> lowest_rank_of_host(size);
  HVDLITE_RETURN_IF_ERROR(InternalUnlessSuccess(
      MPI_Allgather(&lowest, 1, MPI_INT, lowest_rank_of_host.data(), 1, MPI_INT,
                    MpiWorld()),
      "MPI_Allgather"));

  constexpr size_t kNameBytes = MPI_MAX_PROCESSOR_NAME + 1;
  std::vector<char> name(kNameBytes, '\0');
  int length = 0;
  HVDLITE_RETURN_IF_ERROR(InternalUnlessSuccess(
      MPI_Get_processor_name(name.data(), &length), "MPI_Get_processor_name"));
  std::vector<char> names(kNameBytes * size);
  HVDLITE_RETURN_IF_ERROR(InternalUnlessSuccess(
      MPI_Allgather(name.data(), static_cast<int>(kNameBytes), MPI_CHAR,
                    names.data(), static_cast<int>(kNameBytes), MPI_CHAR,
                    MpiWorld()),
      "MPI_Allgather"));
  std::vector<std::string> host_of_rank;
  for (int other = 0; other < size; ++other) {
    host_of_rank.emplace_back(&names[kNameBytes * other]);
  }
  const base::HostIdentity here = base::IdentityOfHost();
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<uint64_t> hosts,
                           OfEveryRank(here.host, size));
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<uint64_t> machines,
                           OfEveryRank(here.machine, size));
  return MakeTopology(rank, SplitHosts(lowest_rank_of_host, hosts),
                      NameMachinesApart(std::move(host_of_rank), machines));
}

// Calls back at the beginning of MPI_Finalize, which deletes the attributes of
// MPI_COMM_SELF before it does anything else (MPI 3.1, 8.7.1). While it lives.
class FinalizeWatch {
 public:
  static absl::StatusOr<std::unique_ptr<FinalizeWatch>> Create(
      std::function<void()> callback) {
    auto watch = std::make_unique<FinalizeWatch>();
    HVDLITE_RETURN_IF_ERROR(InternalUnlessSuccess(
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &FinalizeWatch::OnDelete,
                               &watch->keyval_, nullptr),
        "MPI_Comm_create_keyval"));
    HVDLITE_RETURN_IF_ERROR(InternalUnlessSuccess(
        MPI_Comm_set_attr(MPI_COMM_SELF, watch->keyval_, watch.get()),
        "MPI_Comm_set_attr"));
    watch->callback_ = std::move(callback);
    return watch;
  }
  FinalizeWatch() = default;
  ~FinalizeWatch() {
    const bool is_attribute = std::exchange(callback_, nullptr) != nullptr;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized) return;
    if (is_attribute) MPI_Comm_delete_attr(MPI_COMM_SELF, keyval_);
    if (keyval_ != MPI_KEYVAL_INVALID) MPI_Comm_free_keyval(&keyval_);
  }
  FinalizeWatch(const FinalizeWatch&) = delete;
  FinalizeWatch& operator=(const FinalizeWatch&) = delete;

  // Whether MPI_Finalize has begun.
  bool called() const { return called_; }

 private:
  static int OnDelete(MPI_Comm /*self*/, int /*keyval*/, void* watch,
                      void* /*extra_state*/) {
    auto& that = *static_cast<FinalizeWatch*>(watch);
    const std::function<void()> callback =
        std::exchange(that.callback_, nullptr);
    if (!callback) return MPI_SUCCESS;
    that.called_ = true;
    callback();  // which may destroy `that`
    return MPI_SUCCESS;
  }

  // Null unless it is still to be called.
  std::function<void()> callback_;
  bool called_ = false;
  int keyval_ = MPI_KEYVAL_INVALID;
};

class MpiSessionImpl final : public MpiSession {
 public:
  MpiSessionImpl(Topology topology, bool application_owns_mpi,
                 std::unique_ptr<FinalizeWatch> watch)
      : topology_(std::move(topology)),
        application_owns_mpi_(application_owns_mpi),
        watch_(std::move(watch)) {}

  ~MpiSessionImpl() override {
    if (watch_ != nullptr && !watch_->called()) AbandonMpiWorld();
  }

  const Topology& topology() const override { return topology_; }
  bool application_owns_mpi() const override { return application_owns_mpi_; }
  bool outlives_ranks() const override { return MpiOutlivesRanks(); }
  std::vector<int> DeadRanks() const override { return DeadMpiRanks(); }
  bool is_revoked() const override { return IsMpiWorldRevoked(); }

  absl::Status Finalize() override {
    const bool somebody_finalizes = watch_ == nullptr || watch_->called();
    watch_.reset();
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) EndMpiWorld();
    if (application_owns_mpi_ || somebody_finalizes) return absl::OkStatus();
    if (finalized || MpiHasLostRanks()) return absl::OkStatus();
    const int return_code = FinalizeMpi();
    if (return_code == MPI_SUCCESS) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("MPI_Finalize failed with code ", return_code));
  }

  [[noreturn]] void Abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    _exit(exit_code);  // the standard lets MPI_Abort return
  }

 private:
  const Topology topology_;
  const bool application_owns_mpi_;
  std::unique_ptr<FinalizeWatch> watch_;  // null once the session has ended
};

// Once all ranks have come. Collective.
absl::StatusOr<std::unique_ptr<MpiSession>> Meet(
    std::function<void()> before_finalize,
    const MpiSession::OnStage& on_stage) {
  HVDLITE_RETURN_IF_ERROR(CallTheRoll(on_stage));
  on_stage("finding out which ranks share a host", "");
  HVDLITE_ASSIGN_OR_RETURN(Topology topology, DiscoverTopology());
  HVDLITE_ASSIGN_OR_RETURN(std::unique_ptr<FinalizeWatch> watch,
                           FinalizeWatch::Create(std::move(before_finalize)));
  return std::make_unique<MpiSessionImpl>(std::move(topology),
                                          !initialized_here, std::move(watch));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MpiSession>> MpiSession::Start(
    std::function<void()> before_finalize, const OnStage& on_stage,
    const MpiRanks& ranks) {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) {
    return absl::FailedPreconditionError(
        "MPI has been finalized in this process, and cannot be initialised "
        "again: start hvdlite before MPI_Finalize, and only once per process");
  }
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized) {
    HVDLITE_RETURN_IF_ERROR(CheckApplicationsThreadLevel());
    if (ranks.communicator.has_value() || MpiOutlivesRanks()) {
      on_stage("making a communicator of the ranks",
               "ranks that have not come to hvdlite::init()");
    }
  } else {
    on_stage("MPI_Init_thread",
             "processes that the launcher has not started, or that have not "
             "come to hvdlite::init()");
    HVDLITE_RETURN_IF_ERROR(Initialize());
  }
  HVDLITE_RETURN_IF_ERROR(BeginMpiWorld(ranks));
  absl::StatusOr<std::unique_ptr<MpiSession>> session =
      Meet(std::move(before_finalize), on_stage);
  if (session.ok() || !MpiOutlivesRanks()) return session;
  // A rank was lost meanwhile; the next start is without it.
  AbandonMpiWorld();
  RevokeMpiWorld();
  return absl::UnavailableError(session.status().message());
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

}  // namespace hvdlite::collective

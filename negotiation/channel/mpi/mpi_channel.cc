// The control channel over MPI point-to-point messages.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <list>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "collective/mpi/mpi_world.h"
#include "negotiation/channel/control_channel.h"

namespace hvdlite::negotiation {
namespace {

constexpr int kTag = 1;
// The tag for making the communicator. It differs from the tags of groups that
// are made at the same time on other communicators.
constexpr int kGroupTag = 1;

MPI_Comm MpiWorld() {
  return MPI_Comm_f2c(static_cast<MPI_Fint>(collective::MpiWorldHandle()));
}

absl::Status ToStatus(int code, absl::string_view call) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return absl::UnavailableError(absl::StrCat("control channel: ", call, ": ",
                                             absl::string_view(text, length)));
}

class MpiChannel final : public ControlChannel {
 public:
  // `members`: the members of `communicator`, as ranks of the world.
  MpiChannel(MPI_Comm communicator, std::vector<int> members, int rank,
             int size)
      : communicator_(communicator),
        members_(std::move(members)),
        rank_(rank),
        size_(size) {
    collective::TrackMpiCommunicator(MPI_Comm_c2f(communicator_));
  }

  ~MpiChannel() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) {
      collective::ForgetMpiCommunicator(MPI_Comm_c2f(communicator_));
    }
    // An undelivered message is dropped with its world. Its buffer must stay,
    // because MPI may still use it.
    if (finalized || !sending_.empty() || receiving_.has_value()) {
      for (Sending& sending : sending_) (void)sending.bytes.release();
      if (receiving_.has_value()) (void)receiving_->bytes.release();
      return;
    }
    MPI_Comm_free(&communicator_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::string_view name() const override { return "MPI"; }
  std::vector<int> wake_descriptors() const override { return {}; }

  absl::Status Send(int to, std::string bytes) override {
    const auto member = std::lower_bound(members_.begin(), members_.end(), to);
    if (member == members_.end() || *member != to) {
      return absl::InvalidArgumentError(
          absl::StrCat("control channel: rank ", to,
                       " cannot be reached by MPI from rank ", rank_));
    }
    Sending& sending = sending_.emplace_back();
    sending.number = ++sent_;
    sending.bytes = std::make_unique<std::string>(std::move(bytes));
    return ToStatus(MPI_Isend(sending.bytes->data(),
                              static_cast<int>(sending.bytes->size()), MPI_BYTE,
                              static_cast<int>(member - members_.begin()), kTag,
                              communicator_, &sending.request),
                    "MPI_Isend");
  }

  absl::StatusOr<std::optional<ControlMessage>> TryReceive() override {
    HVDLITE_RETURN_IF_ERROR(FinishSends());
    if (!receiving_.has_value()) {
      HVDLITE_RETURN_IF_ERROR(StartReceiving());
      if (!receiving_.has_value()) return std::nullopt;
    }
    // Receiving a large message needs an answer from its sender, which may take
    // time.
    int received = 0;
    HVDLITE_RETURN_IF_ERROR(
        ToStatus(MPI_Test(&receiving_->request, &received, MPI_STATUS_IGNORE),
                 "MPI_Test"));
    if (!received) return std::nullopt;
    ControlMessage message = {receiving_->from, std::move(*receiving_->bytes)};
    receiving_.reset();
    return message;
  }

  uint64_t delivered() override {
    return sending_.empty() ? sent_ : sending_.front().number - 1;
  }

  absl::Status Flush(absl::Duration timeout) override {
    const absl::Time deadline = absl::Now() + timeout;
    for (;;) {
      HVDLITE_RETURN_IF_ERROR(FinishSends());
      if (sending_.empty()) return absl::OkStatus();
      if (absl::Now() > deadline) {
        return absl::DeadlineExceededError(
            absl::StrCat("control channel: ", sending_.size(),
                         " messages were not delivered within ",
                         absl::FormatDuration(timeout)));
      }
      sched_yield();
    }
  }

 private:
  struct Sending {
    uint64_t number = 0;
    std::unique_ptr<std::string> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  struct Receiving {
    int from = 0;
    std::unique_ptr<std::string> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  // Starts to receive the next message, if one has arrived.
  absl::Status StartReceiving() {
    int arrived = 0;
    MPI_Message handle;
    MPI_Status status;
    HVDLITE_RETURN_IF_ERROR(
        ToStatus(MPI_Improbe(MPI_ANY_SOURCE, kTag, communicator_, &arrived,
                             &handle, &status),
                 "MPI_Improbe"));
    if (!arrived) return absl::OkStatus();
    int count = 0;
    HVDLITE_RETURN_IF_ERROR(
        ToStatus(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count"));
    // emplace() without arguments fails: inside the class, Clang does not know
    // the default values yet.
    Receiving& receiving = receiving_.emplace(Receiving{});
    receiving.from = members_[static_cast<size_t>(status.MPI_SOURCE)];
    receiving.bytes = std::make_unique<std::string>(count, '\0');
    return ToStatus(MPI_Imrecv(receiving.bytes->data(), count, MPI_BYTE,
                               &handle, &receiving.request),
                    "MPI_Imrecv");
  }

  absl::Status FinishSends() {
    for (auto sending = sending_.begin(); sending != sending_.end();) {
      int sent = 0;
      HVDLITE_RETURN_IF_ERROR(ToStatus(
          MPI_Test(&sending->request, &sent, MPI_STATUS_IGNORE), "MPI_Test"));
      sending = sent ? sending_.erase(sending) : std::next(sending);
    }
    return absl::OkStatus();
  }

  MPI_Comm communicator_;
  const std::vector<int> members_;
  const int rank_;
  const int size_;
  uint64_t sent_ = 0;
  std::list<Sending> sending_;  // by number
  std::optional<Receiving> receiving_;
};

// Makes a communicator of `members`.
absl::StatusOr<MPI_Comm> MakeCommunicator(const std::vector<int>& members,
                                          int world_size) {
  MPI_Comm communicator = MPI_COMM_NULL;
  if (static_cast<int>(members.size()) == world_size) {
    HVDLITE_RETURN_IF_ERROR(
        ToStatus(MPI_Comm_dup(MpiWorld(), &communicator), "MPI_Comm_dup"));
    return communicator;
  }
  MPI_Group world = MPI_GROUP_NULL;
  HVDLITE_RETURN_IF_ERROR(
      ToStatus(MPI_Comm_group(MpiWorld(), &world), "MPI_Comm_group"));
  MPI_Group group = MPI_GROUP_NULL;
  absl::Status status =
      ToStatus(MPI_Group_incl(world, static_cast<int>(members.size()),
                              members.data(), &group),
               "MPI_Group_incl");
  MPI_Group_free(&world);
  if (status.ok()) {
    status = ToStatus(
        MPI_Comm_create_group(MpiWorld(), group, kGroupTag, &communicator),
        "MPI_Comm_create_group");
    MPI_Group_free(&group);
  }
  HVDLITE_RETURN_IF_ERROR(status);
  return communicator;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ControlChannel>> CreateMpiChannel(
    absl::Span<const int> members) {
  int rank = 0;
  int size = 0;
  HVDLITE_RETURN_IF_ERROR(
      ToStatus(MPI_Comm_rank(MpiWorld(), &rank), "MPI_Comm_rank"));
  HVDLITE_RETURN_IF_ERROR(
      ToStatus(MPI_Comm_size(MpiWorld(), &size), "MPI_Comm_size"));
  std::vector<int> all(members.begin(), members.end());
  if (all.empty()) {
    all.resize(static_cast<size_t>(size));
    std::iota(all.begin(), all.end(), 0);
  }
  if (!std::binary_search(all.begin(), all.end(), rank)) return nullptr;
  HVDLITE_ASSIGN_OR_RETURN(const MPI_Comm communicator,
                           MakeCommunicator(all, size));
  HVDLITE_RETURN_IF_ERROR(
      ToStatus(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN),
               "MPI_Comm_set_errhandler"));
  return std::make_unique<MpiChannel>(communicator, std::move(all), rank, size);
}

}  // namespace hvdlite::negotiation

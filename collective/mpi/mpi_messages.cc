#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/mpi/mpi_calls.h"

namespace hvdlite::collective {
namespace {

class MpiMessages final : public PointToPoint {
 public:
  MpiMessages(MPI_Comm comm, int name_of_rank)
      : comm_(comm), name_of_rank_(name_of_rank) {
    // A message that has begun is not lost for want of memory.
    messages_.reserve(kReserved);
    free_.reserve(kReserved);
  }

  absl::StatusOr<Id> Send(int to, int tag,
                          absl::Span<const std::byte> bytes) override {
    MPI_Request request = MPI_REQUEST_NULL;
    HVDLITE_RETURN_IF_ERROR(
        Check(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE,
                        to, tag, comm_, &request),
              "MPI_Isend"));
    return Keep({request, kSend});
  }

  absl::StatusOr<Id> Receive(int from, int tag,
                             absl::Span<std::byte> bytes) override {
    MPI_Request request = MPI_REQUEST_NULL;
    HVDLITE_RETURN_IF_ERROR(
        Check(MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE,
                        from, tag, comm_, &request),
              "MPI_Irecv"));
    return Keep({request, static_cast<int>(bytes.size())});
  }

  absl::StatusOr<bool> Test(Id id) override {
    Message& message = messages_[id];
    int done = 0;
    MPI_Status status;
    HVDLITE_RETURN_IF_ERROR(
        Check(MPI_Test(&message.request, &done, &status), "MPI_Test"));
    if (done == 0) return false;
    free_.push_back(id);
    if (message.expected == kSend) return true;
    int received = 0;
    HVDLITE_RETURN_IF_ERROR(
        Check(MPI_Get_count(&status, MPI_BYTE, &received), "MPI_Get_count"));
    if (received == message.expected) return true;
    return absl::UnavailableError(absl::StrCat(
        "MPI_Irecv on rank ", name_of_rank_, " received ", received,
        " bytes where ", message.expected, " were expected"));
  }

  // A receive that has no message yet ends here. Others are MPI's to the end,
  // which comes soon: their bytes are on the way.
  void Cancel(Id id) override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    MPI_Request& request = messages_[id].request;
    // A message whose Test has failed is no request any more.
    if (finalized || request == MPI_REQUEST_NULL) return;
    int done = 0;
    if (MPI_Cancel(&request) != MPI_SUCCESS ||
        MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
        done == 0) {
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
    free_.push_back(id);
  }

  size_t under_way() const override { return messages_.size() - free_.size(); }

 private:
  static constexpr size_t kReserved = 256;
  static constexpr int kSend = -1;
  struct Message {
    MPI_Request request;
    int expected;  // bytes; or kSend
  };

  Id Keep(const Message& message) {
    if (free_.empty()) {
      messages_.push_back(message);
      return messages_.size() - 1;
    }
    const Id id = free_.back();
    free_.pop_back();
    messages_[id] = message;
    return id;
  }

  absl::Status Check(int return_code, absl::string_view call) const {
    return MpiCallStatus(return_code, call, name_of_rank_);
  }

  const MPI_Comm comm_;
  const int name_of_rank_;
  std::vector<Message> messages_;
  std::vector<Id> free_;
};

}  // namespace

std::unique_ptr<PointToPoint> CreateMpiMessages(MPI_Comm comm,
                                                int name_of_rank) {
  return std::make_unique<MpiMessages>(comm, name_of_rank);
}

}  // namespace hvdlite::collective

#include "collective/mpi/mpi_messages.h"

#include <vector>

#include "base/status_macros.h"
#include "collective/mpi/mpi_calls.h"

namespace hvdlite::collective {
namespace {

class MpiMessages final : public PointToPoint {
 public:
  MpiMessages(MPI_Comm comm, int name_of_rank)
      : comm_(comm), name_of_rank_(name_of_rank) {}

  absl::StatusOr<Id> Send(int to, int tag,
                          absl::Span<const std::byte> bytes) override {
    MPI_Request request = MPI_REQUEST_NULL;
    HVDLITE_RETURN_IF_ERROR(
        Check(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE,
                        to, tag, comm_, &request),
              "MPI_Isend"));
    return Keep(request);
  }

  absl::StatusOr<Id> Receive(int from, int tag,
                             absl::Span<std::byte> bytes) override {
    MPI_Request request = MPI_REQUEST_NULL;
    HVDLITE_RETURN_IF_ERROR(
        Check(MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE,
                        from, tag, comm_, &request),
              "MPI_Irecv"));
    return Keep(request);
  }

  absl::StatusOr<bool> Test(Id id) override {
    int done = 0;
    HVDLITE_RETURN_IF_ERROR(
        Check(MPI_Test(&requests_[id], &done, MPI_STATUS_IGNORE), "MPI_Test"));
    if (done == 0) return false;
    free_.push_back(id);
    return true;
  }

  // A receive that has no message yet ends here. Others are MPI's to the end,
  // which comes soon: their bytes are on the way.
  void Cancel(Id id) override {
    int done = 0;
    if (MPI_Cancel(&requests_[id]) != MPI_SUCCESS ||
        MPI_Test(&requests_[id], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
        done == 0) {
      if (requests_[id] != MPI_REQUEST_NULL) MPI_Request_free(&requests_[id]);
    }
    free_.push_back(id);
  }

 private:
  Id Keep(MPI_Request request) {
    if (free_.empty()) {
      requests_.push_back(request);
      return requests_.size() - 1;
    }
    const Id id = free_.back();
    free_.pop_back();
    requests_[id] = request;
    return id;
  }

  absl::Status Check(int return_code, absl::string_view call) const {
    return MpiCallStatus(return_code, call, name_of_rank_);
  }

  const MPI_Comm comm_;
  const int name_of_rank_;
  std::vector<MPI_Request> requests_;
  std::vector<Id> free_;
};

}  // namespace

std::unique_ptr<PointToPoint> CreateMpiMessages(MPI_Comm comm,
                                                int name_of_rank) {
  return std::make_unique<MpiMessages>(comm, name_of_rank);
}

}  // namespace hvdlite::collective

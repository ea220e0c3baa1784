#include "bench/hvdlite_bench/data_plane.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "bench/hvdlite_bench/rounds.h"
#include "collective/mpi/mpi_communicator.h"
#include "collective/shm/shm_communicator.h"

namespace hvdlite::tools {

using collective::Communicator;
using collective::MpiSession;

void Check(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(std::string(status.message()));
}

absl::StatusOr<std::unique_ptr<Communicator>> CreateShm(
    const collective::AllreduceTable& table) {
  HVDLITE_ASSIGN_OR_RETURN(std::unique_ptr<MpiSession> session,
                           MpiSession::Start());
  HVDLITE_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> flat,
                           collective::CreateMpiCommunicator());
  return collective::CreateShmCommunicator(
      flat, session->topology().cross_rank_of_rank, table);
}

std::vector<int> NodeOfRank() {
  auto session = MpiSession::Start();
  Check(session.status());
  return (*session)->topology().cross_rank_of_rank;
}

absl::Span<std::byte> BytesOf(absl::Span<float> data) {
  return {reinterpret_cast<std::byte*>(data.data()),
          data.size() * sizeof(float)};
}

absl::Span<float> FloatsOf(absl::Span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

int RepeatsFor(int64_t bytes, int64_t sample_bytes, int most) {
  return static_cast<int>(std::clamp<int64_t>(sample_bytes / bytes, 1, most));
}

Sample MeasureSum(const std::function<void(absl::Span<float>)>& sum,
                  absl::Span<float> data, int repeats, const TestValues& values,
                  MPI_Comm communicator) {
  values.Fill(data);
  sum(data);
  Sample sample;
  sample.wrong = SumOverRanks(values.CountWrong(data), communicator);
  std::fill(data.begin(), data.end(), 0.0f);
  sample.value = TimeRuns([&] { sum(data); }, repeats, communicator);
  return sample;
}

}  // namespace hvdlite::tools

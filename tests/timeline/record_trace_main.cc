// Records a small training of two ranks, as hvdlite does, for tests of viewers.
//
// usage: record_trace FILE

#include <cstdint>
#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "timeline/record/part_merge.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::timeline {
namespace {

constexpr int kRanks = 2;
constexpr int64_t kStepNs = 20'000'000;

TraceEvent Event(const std::string& name, int lane, int64_t start_ns,
                 int64_t duration_ns) {
  return {.name = name,
          .lane = lane,
          .start_ns = start_ns,
          .duration_ns = duration_ns};
}

// A batch of two tensors.
void RecordBatch(int64_t number, int64_t start_ns, TraceRecorder* recorder) {
  for (int i = 0; i < 2; ++i) {
    const std::string tensor = absl::StrCat("layer", i, ".weight");
    TraceEvent negotiation =
        Event("NEGOTIATE_ALLREDUCE", kFirstTensorLane + i,
              start_ns - 1'000'000 + i * 1'003, 1'000'000 - i * 1'003);
    negotiation.args = {{"tensor", tensor}, {"bytes", int64_t{4096}}};
    recorder->Record(negotiation);
    TraceEvent operation =
        Event("ALLREDUCE", kFirstTensorLane + i, start_ns, 2'000'000);
    operation.args = {{"tensor", tensor}, {"batch", number}};
    operation.flow = TraceEvent::Flow::kOut;
    operation.flow_id = number;
    recorder->Record(operation);
  }
  TraceEvent batch = Event("ALLREDUCE_BATCH", kBatchLane, start_ns, 2'000'000);
  batch.args = {{"batch", number}, {"algorithm", "shm \"by\" chunks \xc3\xbc"}};
  batch.flow = TraceEvent::Flow::kIn;
  batch.flow_id = number;
  recorder->Record(batch);
  recorder->Record(Event("WAIT_FOR_RANKS", kBatchLane, start_ns, 300'001));
  recorder->Record(
      Event("MPI_ALLREDUCE", kBatchLane, start_ns + 300'001, 1'699'999));
}

absl::Status RecordRank(const std::string& path, int rank) {
  const base::SteadyClock clock;
  TraceRecorder::Options options;
  options.path = path;
  options.rank = rank;
  options.size = kRanks;
  options.host = absl::StrCat("node", rank);
  options.clock_offset_ns = rank * 12'345;
  options.facts = {{"clock_uncertainty_ns", int64_t{rank * 500}}};
  HVDLITE_ASSIGN_OR_RETURN(const auto recorder,
                           TraceRecorder::Open(options, clock));
  for (int64_t step = 1; step <= 5; ++step) {
    const int64_t start_ns = step * kStepNs;
    TraceEvent span = Event("TRAINING_STEP", kStepLane, start_ns, kStepNs);
    span.args = {{"step", step}};
    recorder->Record(span);
    recorder->Record(
        Event("FORWARD", kUserLane, start_ns + 1'000'000, 4'000'000));
    recorder->Record(
        Event("BACKWARD", kUserLane, start_ns + 5'000'000, 8'000'000));
    recorder->Record(
        Event(kWaitForGradients, kUserLane, start_ns + 13'000'000, 6'000'000));
    RecordBatch(2 * step - 1, start_ns + 8'000'000, recorder.get());
    RecordBatch(2 * step, start_ns + 15'000'000, recorder.get());
    TraceEvent memory = Event("MEMORY", kBatchLane, start_ns, 0);
    memory.kind = TraceEvent::Kind::kCounter;
    memory.args = {{"resident_bytes", step << 20}, {"major_faults", 0.5}};
    recorder->Record(memory);
  }
  return recorder->Close();
}

absl::Status RecordTrace(const std::string& path) {
  for (int rank = 0; rank < kRanks; ++rank) {
    HVDLITE_RETURN_IF_ERROR(RecordRank(path, rank));
  }
  return MergeTraceParts(path, kRanks);
}

}  // namespace
}  // namespace hvdlite::timeline

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: record_trace FILE\n";
    return 2;
  }
  const absl::Status status = hvdlite::timeline::RecordTrace(argv[1]);
  if (!status.ok()) std::cerr << "record_trace: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}

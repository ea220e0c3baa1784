#include "tools/scale_sim/horovod.h"

#include <algorithm>
#include <cstddef>

#include "tools/scale_sim/network.h"

namespace hvdlite::scale_sim {
namespace {

// What rank 0 hears from and tells each rank about a cycle: a bit per tensor in
// either direction, with the names cached.
constexpr int64_t kBytesPerTensorBits = 8;

// The slowest rank, whose clock and computation go on at different speeds.
class SlowestRank {
 public:
  SlowestRank(double computation, double speed)
      : computation_(computation), speed_(speed) {}

  double now() const { return now_; }
  double computed() const { return computed_; }

  // Computes for `seconds`, at `part` of its speed.
  void Spend(double seconds, double part = 1) {
    now_ += seconds;
    computed_ = std::min(computation_, computed_ + seconds * speed_ * part);
  }
  void ComputeUntil(double computed) {
    if (computed <= computed_) return;
    now_ += (computed - computed_) / speed_;
    computed_ = computed;
  }

 private:
  const double computation_;  // seconds at full speed
  const double speed_;
  double now_ = 0;
  double computed_ = 0;
};

}  // namespace

StepTime HorovodStep(const TrainingModel& model, const HorovodOptions& options,
                     double images, int ranks) {
  const ComputeModel& compute = model.compute;
  double computation = images * compute.image_ms * 1e-3;
  if (compute.jitter > 0) {
    computation *= 1 + compute.jitter * ExpectedExponentialMaximum(ranks);
  }
  StepTime time;
  if (ranks == 1) {
    time.step = time.computation = computation;
    return time;
  }
  const double speed = 1 - compute.starved_share;
  time.computation = computation / speed;

  const std::vector<int64_t>& bytes = model.gradients.bytes;
  const size_t tensors = bytes.size();
  const auto ready = [&](size_t tensor) {
    return computation *
           (compute.forward_share + (1 - compute.forward_share) *
                                        model.gradients.ready_fraction[tensor]);
  };
  NetworkParameters network;
  network.within_node = model.allreduce.within_node;
  network.between_nodes = model.allreduce.between_nodes;
  network.ranks_per_node = model.allreduce.ranks_per_node;
  const int64_t message_bytes =
      1 + static_cast<int64_t>(tensors) / kBytesPerTensorBits;
  const double negotiation =
      ComputeStar(network, ranks, message_bytes, message_bytes).latency_us *
      1e-6;
  const double cycle = options.cycle_ms * 1e-3;

  SlowestRank rank(computation, speed);
  double cycle_begin = 0;
  size_t next = 0;
  while (next < tensors) {
    rank.ComputeUntil(ready(next));
    // Cycles without anything ready have gone by since.
    if (cycle > 0) {
      const double cycles = std::ceil((rank.now() - cycle_begin) / cycle);
      rank.Spend(std::max(0.0, cycle_begin + cycles * cycle - rank.now()));
    }
    size_t end = next + 1;
    // The last is ready with all computation, whatever rounding makes of it.
    while (end < tensors && ready(end) <= rank.computed()) ++end;
    rank.Spend(negotiation);
    while (next < end) {
      int64_t batch = bytes[next++];
      while (next < end && batch + bytes[next] <= options.fusion_bytes) {
        batch += bytes[next++];
      }
      const double seconds = AllreduceSeconds(model.allreduce, batch, ranks);
      rank.Spend(seconds, options.overlap);
      time.communication += seconds;
      ++time.batches;
    }
    cycle_begin = rank.now();
  }
  time.step = rank.now();
  time.exposed = time.step - time.computation;
  return time;
}

std::vector<StepGroup> StepsOfEpoch(int images, int batch, int ranks,
                                    LastBatch last) {
  const int of_rank = (images + ranks - 1) / ranks;
  std::vector<StepGroup> steps;
  if (of_rank >= batch) {
    steps.push_back({.steps = of_rank / batch, .images = batch});
  }
  const int rest = of_rank % batch;
  if (rest == 0) return steps;
  if (last == LastBatch::kPartial) {
    steps.push_back({.steps = 1, .images = rest});
  } else if (steps.empty()) {
    steps.push_back({.steps = 1, .images = batch});
  } else {
    ++steps.front().steps;
  }
  return steps;
}

EpochTime TimeOfEpoch(const std::vector<StepGroup>& steps,
                      const ComputeModel& compute,
                      const std::function<StepTime(int images)>& step) {
  EpochTime epoch;
  for (const StepGroup& group : steps) {
    const StepTime time = step(group.images);
    const auto count = static_cast<double>(group.steps);
    epoch.steps += group.steps;
    epoch.seconds += count * time.step;
    epoch.exposed_seconds += count * time.exposed;
  }
  if (!steps.empty()) {
    epoch.seconds += compute.first_batch_share * compute.image_ms * 1e-3 *
                     steps.front().images;
  }
  return epoch;
}

EpochTime HorovodEpoch(const HorovodModel& model, int images, int batch,
                       int ranks) {
  return TimeOfEpoch(StepsOfEpoch(images, batch, ranks, model.last_batch),
                     model.training.compute, [&](int of_rank) {
                       return HorovodStep(model.training, model.options,
                                          of_rank, ranks);
                     });
}

}  // namespace hvdlite::scale_sim

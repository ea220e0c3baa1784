#include "tools/scale_sim/prediction_assumptions.h"

#include "absl/strings/str_format.h"

namespace hvdlite::scale_sim {
namespace {

const char* Name(AllreduceAlgorithm algorithm) {
  switch (algorithm) {
    case AllreduceAlgorithm::kRecursiveDoubling:
      return "recursive doubling";
    case AllreduceAlgorithm::kRing:
      return "a ring";
    case AllreduceAlgorithm::kRabenseifner:
      return "Rabenseifner's algorithm";
    case AllreduceAlgorithm::kFastest:
      break;
  }
  return "the fastest of three algorithms";
}

std::string CoreText(const PredictionReport& report, double starved_share) {
  const HvdliteAssumptions& assumptions = report.assumptions;
  const int threads = report.table.cores_per_node / assumptions.ranks_per_node;
  switch (assumptions.core) {
    case CommunicationCore::kOwn:
      return absl::StrFormat(
          "the coordinator has one of a rank's %d cores to itself, which costs "
          "%.1f %% of the computing speed (--comm-core own)",
          threads, 100 * starved_share);
    case CommunicationCore::kShared:
      return absl::StrFormat(
          "the coordinator shares a core with a computing thread for %.0f %% "
          "of "
          "the time, which costs %.1f %% of the computing speed (--comm-core "
          "shared)",
          100 * assumptions.busy_share, 100 * starved_share);
    case CommunicationCore::kSpare:
      break;
  }
  return "the coordinator has a core that computation does not use, and costs "
         "nothing (--comm-core spare)";
}

std::vector<std::string> OfBoth(const ColumnFit& fit) {
  const ComputeModel& compute = fit.model.training.compute;
  const GradientSet& gradients = fit.model.training.gradients;
  std::vector<std::string> lines;
  lines.push_back(
      absl::StrFormat("%d gradients of %d bytes in all: %s (--gradients); "
                      "forward is %.3g of the "
                      "computation (--forward-share)",
                      gradients.bytes.size(), gradients.total_bytes(),
                      gradients.name, compute.forward_share));
  lines.push_back(
      compute.jitter > 0
          ? absl::StrFormat("ranks compute longer than they would alone, by a "
                            "part that is exponentially distributed with mean "
                            "%.3g (--jitter); a step waits for the slowest",
                            compute.jitter)
          : "all ranks compute equally fast (--jitter)");
  lines.push_back(fit.model.last_batch == LastBatch::kFull
                      ? "an epoch's last step takes a full batch (--last-batch)"
                      : "an epoch's last step takes the images that are left "
                        "(--last-batch)");
  return lines;
}

std::vector<std::string> OfHorovod(const ColumnFit& fit) {
  const HorovodOptions& options = fit.model.options;
  const TrainingModel& training = fit.model.training;
  return {
      absl::StrFormat("one rank per node, which loses %.1f %% of its computing "
                      "speed to the communication thread (--starved-share)",
                      100 * training.compute.starved_share),
      options.overlap > 0
          ? absl::StrFormat("computation goes on at %.3g of its speed while a "
                            "buffer is reduced (--overlap)",
                            options.overlap)
          : "computation stands still while a buffer is reduced (--overlap)",
      absl::StrFormat("every %.3g ms rank 0 asks all ranks what is ready "
                      "(--cycle-ms); buffers of up to %d bytes "
                      "(--fusion-bytes)",
                      options.cycle_ms, options.fusion_bytes),
      absl::StrFormat("MPI reduces by %s (--algorithm), with %.4g ns per byte "
                      "of software (--software-ns-per-byte) and %.3g of the "
                      "network (--network)",
                      Name(training.allreduce.algorithm),
                      training.allreduce.software_ns_per_byte,
                      training.allreduce.between_nodes.ns_per_byte)};
}

std::vector<std::string> OfHvdlite(const PredictionReport& report,
                                   const ColumnFit& fit) {
  const HvdliteAssumptions& assumptions = report.assumptions;
  const TrainingModel model =
      HvdliteTrainingModel(report.table, fit, assumptions);
  std::vector<std::string> lines;
  lines.push_back(absl::StrFormat(
      "%d ranks per node (--ranks-per-node), which together compute as fast as "
      "the one of the fit, %.4g ms per image and node, without starved "
      "threads, "
      "and take as many images per step, %d per node",
      assumptions.ranks_per_node, fit.model.training.compute.image_ms,
      report.table.batch_per_rank));
  lines.push_back(CoreText(report, model.compute.starved_share));
  lines.push_back(
      assumptions.options.overlap
          ? "computation goes on at that speed while batches are reduced "
            "(--no-overlap)"
          : "no batch begins before step() waits (--no-overlap)");
  lines.push_back(
      assumptions.two_level
          ? absl::StrFormat(
                "gradients are reduced through shared memory within a node, "
                "%.3g ns per byte read (--shared-memory-ns-per-byte), then "
                "among nodes, each rank its part (--one-level)",
                assumptions.shared_memory_ns_per_byte)
          : "all ranks are reduced at once by MPI (--one-level)");
  lines.push_back(absl::StrFormat(
      "MPI reduces by %s (--hvdlite-algorithm), with %.4g ns per byte of "
      "software (--hvdlite-software-ns-per-byte) and %.3g of the network, in "
      "pieces of %d bytes (--chunk-bytes)",
      Name(model.allreduce.algorithm), model.allreduce.software_ns_per_byte,
      model.allreduce.between_nodes.ns_per_byte, assumptions.chunk_bytes));
  lines.push_back(absl::StrFormat(
      "negotiation and fusion are hvdlite's, run in virtual time by up to %d "
      "ranks (--max-simulated-ranks); batches of up to %d bytes, at least %d "
      "unless somebody waits",
      assumptions.options.max_simulated_ranks,
      assumptions.options.fusion_threshold_bytes,
      assumptions.options.min_batch_bytes));
  return lines;
}

}  // namespace

PredictionAssumptions AssumptionsOf(const PredictionReport& report,
                                    const ColumnFit& fit) {
  return {.both = OfBoth(fit),
          .horovod = OfHorovod(fit),
          .hvdlite = OfHvdlite(report, fit)};
}

}  // namespace hvdlite::scale_sim

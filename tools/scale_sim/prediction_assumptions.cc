// What predictions rest on, in words.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/scale_sim/epoch_reports.h"

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
  lines.push_back(absl::StrFormat(
      "the first batch of an epoch costs %.3g of its computation on top "
      "(--first-batch-share)",
      compute.first_batch_share));
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
  const HvdliteAssumptions& assumptions = report.variants.front().assumptions;
  const TrainingModel model =
      HvdliteTrainingModel(report.table, fit, assumptions);
  return {
      absl::StrFormat(
          "as Horovod's: one rank per node, %.1f %% of its computing speed "
          "lost "
          "to the communication thread, MPI by %s with %.4g ns per byte of "
          "software",
          100 * model.compute.starved_share, Name(model.allreduce.algorithm),
          model.allreduce.software_ns_per_byte),
      assumptions.options.overlap
          ? "computation goes on at its speed while batches are reduced"
          : "no batch begins before step() waits, as no overlap is known of "
            "Horovod (--overlap)",
      absl::StrFormat(
          "its own: negotiation and fusion, run in virtual time by up to %d "
          "ranks (--max-simulated-ranks); batches of up to %d bytes "
          "(--fusion-bytes), at least %d unless somebody waits, reduced in "
          "pieces of %d (--chunk-bytes)",
          assumptions.options.max_simulated_ranks,
          assumptions.options.fusion_threshold_bytes,
          assumptions.options.min_batch_bytes, assumptions.chunk_bytes)};
}

std::string CoreText(const PredictionReport& report,
                     const HvdliteAssumptions& assumptions) {
  const int threads = report.table.cores_per_node / assumptions.ranks_per_node;
  const double share =
      StarvedShare(*assumptions.core, threads, assumptions.busy_share);
  switch (*assumptions.core) {
    case CommunicationCore::kOwn:
      return absl::StrFormat(
          "the coordinator has one of a rank's %d cores to itself, which costs "
          "%.1f %% of the computing speed (--comm-core own); a core less to "
          "compute on would free Horovod's thread, too",
          threads, 100 * share);
    case CommunicationCore::kShared:
      return absl::StrFormat(
          "the coordinator shares a core with a computing thread for %.0f %% "
          "of "
          "the time, which costs %.1f %% of the computing speed (--comm-core "
          "shared, --busy-share)",
          100 * assumptions.busy_share, 100 * share);
    case CommunicationCore::kSpare:
      break;
  }
  return "the coordinator has a core that computation does not use, and costs "
         "nothing (--comm-core spare)";
}

std::string AddedText(const PredictionReport& report, const ColumnFit& fit,
                      const HvdliteVariant& variant) {
  const HvdliteAssumptions& assumptions = variant.assumptions;
  switch (*variant.added) {
    case Addition::kCore:
      return CoreText(report, assumptions);
    case Addition::kOverlap:
      return "computation goes on at its speed while batches are reduced";
    case Addition::kRanks:
      return absl::StrFormat(
          "the ranks of a node (--ranks-per-node) together compute as fast as "
          "the one of the fit, %.4g ms per image, %s and take as many images "
          "per step, %d per node",
          fit.model.training.compute.image_ms,
          assumptions.core == CommunicationCore::kOwn
              ? "less a core of each for its coordinator,"
              : "",
          report.table.batch_per_rank);
    case Addition::kSharedMemory:
      return absl::StrFormat(
          "gradients are reduced through it within a node, %.3g ns per byte "
          "read (--shared-memory-ns-per-byte), then among nodes, each rank its "
          "part",
          assumptions.shared_memory_ns_per_byte);
    case Addition::kAlgorithm:
      return absl::StrCat("MPI reduces by ",
                          Name(assumptions.algorithm.value_or(
                              fit.model.training.allreduce.algorithm)),
                          " (--hvdlite-algorithm)");
    case Addition::kSoftware:
      break;
  }
  return "MPI's cost of software per byte (--hvdlite-software-ns-per-byte)";
}

}  // namespace

PredictionAssumptions AssumptionsOf(const PredictionReport& report,
                                    const ColumnFit& fit) {
  PredictionAssumptions assumptions = {.both = OfBoth(fit),
                                       .horovod = OfHorovod(fit),
                                       .hvdlite = OfHvdlite(report, fit),
                                       .added = {}};
  for (const HvdliteVariant& variant : report.variants) {
    if (!variant.added.has_value()) continue;
    assumptions.added.push_back(absl::StrCat(NameOf(variant).substr(2), ": ",
                                             AddedText(report, fit, variant)));
  }
  return assumptions;
}

}  // namespace hvdlite::scale_sim

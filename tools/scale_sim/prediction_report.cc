#include "tools/scale_sim/prediction_report.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
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

double Exposed(const StepTime& step) { return step.exposed / step.step; }

nlohmann::json Json(const Prediction& prediction) {
  return {{"system", prediction.system},
          {"nodes", prediction.nodes},
          {"ranks", prediction.ranks},
          {"simulated_ranks", prediction.simulated_ranks},
          {"strong_scaling",
           {{"steps", prediction.epoch.steps},
            {"epoch_seconds", prediction.epoch.seconds},
            {"speedup", prediction.speedup},
            {"efficiency", prediction.efficiency},
            {"exposed_share",
             prediction.epoch.exposed_seconds / prediction.epoch.seconds}}},
          {"weak_scaling",
           {{"step_seconds", prediction.full_step.step},
            {"computation_seconds", prediction.full_step.computation},
            {"communication_seconds", prediction.full_step.communication},
            {"batches", prediction.full_step.batches},
            {"efficiency", prediction.weak_efficiency},
            {"exposed_share", Exposed(prediction.full_step)}}}};
}

}  // namespace

std::vector<std::string> AssumptionsOf(const PredictionReport& report,
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
      "ranks (--max-simulated-ranks)",
      assumptions.options.max_simulated_ranks));
  return lines;
}

void PrintPredictions(const PredictionReport& report, std::ostream& out) {
  for (const ColumnPrediction& column : report.columns) {
    out << "## " << column.fit.column.name << "\n\nAssumed of hvdlite:\n";
    for (const std::string& line : AssumptionsOf(report, column.fit)) {
      out << "- " << line << "\n";
    }
    out << absl::StrFormat(
        "\nStrong scaling: an epoch of %d images. Weak scaling: a step of %d "
        "images per node, whether or not the data set has as many.\n\n",
        report.table.images, report.table.batch_per_rank);
    out << "| nodes | system | ranks | strong: steps | epoch s | speed-up | "
           "efficiency % | exposed % | weak: step ms | efficiency % | exposed "
           "% |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
    for (const Prediction& p : column.predictions) {
      out << absl::StrFormat(
          "| %d | %s | %d | %d | %.3g | %.1f | %.1f | %.1f | %.1f | %.1f | "
          "%.1f "
          "|\n",
          p.nodes, p.system, p.ranks, p.epoch.steps, p.epoch.seconds, p.speedup,
          100 * p.efficiency, 100 * p.epoch.exposed_seconds / p.epoch.seconds,
          1e3 * p.full_step.step, 100 * p.weak_efficiency,
          100 * Exposed(p.full_step));
    }
    out << "\n";
  }
}

std::string PredictionsToJson(const PredictionReport& report) {
  nlohmann::json columns = nlohmann::json::array();
  for (const ColumnPrediction& column : report.columns) {
    nlohmann::json predictions = nlohmann::json::array();
    for (const Prediction& prediction : column.predictions) {
      predictions.push_back(Json(prediction));
    }
    columns.push_back({{"name", column.fit.column.name},
                       {"assumptions", AssumptionsOf(report, column.fit)},
                       {"predictions", std::move(predictions)}});
  }
  const nlohmann::json document = {
      {"source", report.table.source},
      {"images", report.table.images},
      {"images_per_node_and_step", report.table.batch_per_rank},
      {"columns", std::move(columns)}};
  return document.dump(2) + "\n";
}

}  // namespace hvdlite::scale_sim

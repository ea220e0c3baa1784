#include "tools/scale_sim/epoch_reports.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace hvdlite::scale_sim {
namespace {

bool Fitted(const ColumnFit& fit, absl::string_view parameter) {
  for (const std::string& name : fit.parameters) {
    if (name == parameter) return true;
  }
  return false;
}

double ValueOf(const ColumnFit& fit, const FitParameter& parameter) {
  HorovodModel model = fit.model;
  return parameter.of(model);
}

// Values that were not fitted stand in brackets.
void PrintParameters(const FitReport& report, std::ostream& out) {
  out << "| column | ranks per node |";
  for (const FitParameter& parameter : FitParameters()) {
    out << " " << parameter.name << " |";
  }
  out << " a rank's cores' worth | held out: median error | maximum |";
  if (!report.subsets.empty()) {
    out << absl::StrFormat(
        " all choices of %d rows: median of medians | worst median | medians "
        "within %.0f %% |",
        report.options.fit_nodes.size(), 100 * report.bound);
  }
  out << "\n|---|---|";
  for (size_t i = 0; i < FitParameters().size() + 3; ++i) out << "---|";
  if (!report.subsets.empty()) out << "---|---|---|";
  out << "\n";
  for (size_t i = 0; i < report.fits.size(); ++i) {
    const ColumnFit& fit = report.fits[i];
    out << absl::StrFormat("| %s | %d |", fit.column.name,
                           fit.column.ranks_per_node);
    for (const FitParameter& parameter : FitParameters()) {
      const double value = ValueOf(fit, parameter);
      out << (Fitted(fit, parameter.name) ? absl::StrFormat(" %.4g |", value)
                                          : absl::StrFormat(" (%g) |", value));
    }
    const std::optional<double> cores = CoresWorth(report, fit);
    out << (cores.has_value() ? absl::StrFormat(" %.1f |", *cores) : " - |");
    out << absl::StrFormat(" %.1f %% | %.1f %% |", 100 * fit.median_error,
                           100 * fit.max_error);
    if (!report.subsets.empty()) {
      const SubsetErrors& errors = report.subsets[i];
      out << absl::StrFormat(
          " %.1f %% | %.1f %% | %d of %d |", 100 * errors.median_of_medians,
          100 * errors.worst_median, errors.medians_within, errors.subsets);
    }
    out << "\n";
  }
}

void PrintPoints(const FitReport& report, std::ostream& out) {
  out << "\n| nodes |";
  for (const ColumnFit& fit : report.fits) {
    out << " " << fit.column.name << ": measured s | predicted s | error % |";
  }
  out << "\n|---|";
  for (size_t i = 0; i < report.fits.size(); ++i) out << "---|---|---|";
  out << "\n";
  for (size_t row = 0; row < report.table.nodes.size(); ++row) {
    out << "| " << report.table.nodes[row] << " |";
    for (const ColumnFit& fit : report.fits) {
      const FittedPoint& point = fit.points[row];
      out << absl::StrFormat(" %.2f | %.2f | %+.1f%s |", point.measured_seconds,
                             point.predicted_seconds, 100 * point.error(),
                             point.fitted ? "*" : "");
    }
    out << "\n";
  }
}

nlohmann::json Json(const FitReport& report, size_t index) {
  const ColumnFit& fit = report.fits[index];
  nlohmann::json parameters = nlohmann::json::object();
  for (const FitParameter& parameter : FitParameters()) {
    parameters[std::string(parameter.name)] = {
        {"value", ValueOf(fit, parameter)},
        {"fitted", Fitted(fit, parameter.name)}};
  }
  nlohmann::json points = nlohmann::json::array();
  for (const FittedPoint& point : fit.points) {
    points.push_back({{"nodes", point.nodes},
                      {"measured_seconds", point.measured_seconds},
                      {"predicted_seconds", point.predicted_seconds},
                      {"error", point.error()},
                      {"fitted", point.fitted}});
  }
  nlohmann::json document = {{"name", fit.column.name},
                             {"ranks_per_node", fit.column.ranks_per_node},
                             {"parameters", std::move(parameters)},
                             {"points", std::move(points)},
                             {"held_out_median_error", fit.median_error},
                             {"held_out_max_error", fit.max_error}};
  if (const std::optional<double> cores = CoresWorth(report, fit)) {
    document["cores_worth_of_a_rank"] = *cores;
  }
  if (!report.subsets.empty()) {
    const SubsetErrors& errors = report.subsets[index];
    document["all_choices_of_rows"] = {
        {"rows", report.options.fit_nodes.size()},
        {"choices", errors.subsets},
        {"median_of_median_errors", errors.median_of_medians},
        {"worst_median_error", errors.worst_median},
        {"bound", report.bound},
        {"medians_within_bound", errors.medians_within}};
  }
  return document;
}

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
      assumptions.hierarchical
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

// What predictions rest on: a sentence each, with the flag that changes it.
struct PredictionAssumptions {
  std::vector<std::string> both;
  std::vector<std::string> horovod;
  std::vector<std::string> hvdlite;
};

// For the fit of a column.
PredictionAssumptions AssumptionsOf(const PredictionReport& report,
                                    const ColumnFit& fit) {
  return {.both = OfBoth(fit),
          .horovod = OfHorovod(fit),
          .hvdlite = OfHvdlite(report, fit)};
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

void PrintAssumptions(const char* of, const std::vector<std::string>& lines,
                      std::ostream& out) {
  out << "\nAssumed of " << of << ":\n";
  for (const std::string& line : lines) out << "- " << line << "\n";
}

}  // namespace

std::optional<double> CoresWorth(const FitReport& report,
                                 const ColumnFit& fit) {
  if (fit.column.ranks_per_node == 1) return std::nullopt;
  const std::string set_up =
      fit.column.name.substr(0, fit.column.name.find('/'));
  for (const ColumnFit& other : report.fits) {
    if (other.column.ranks_per_node == 1 &&
        other.column.name.substr(0, other.column.name.find('/')) == set_up) {
      return report.table.cores_per_node *
             other.model.training.compute.image_ms /
             fit.model.training.compute.image_ms;
    }
  }
  return std::nullopt;
}

void PrintFit(const FitReport& report, std::ostream& out) {
  const EpochTable& table = report.table;
  out << "Strong scaling: an epoch of " << table.images << " images, up to "
      << (table.world_batch > 0 ? table.world_batch : table.batch_per_rank)
      << (table.world_batch > 0 ? " of all ranks" : " per rank")
      << " and step. "
      << (table.ranks_stand_for_nodes ? "Nodes are ranks of one node. " : "")
      << "Fitted to the rows of "
      << absl::StrJoin(report.options.fit_nodes, ", ")
      << " nodes (*); errors are those of the other rows.\n\n";
  PrintParameters(report, out);
  PrintPoints(report, out);
}

std::string FitToJson(const FitReport& report) {
  nlohmann::json columns = nlohmann::json::array();
  for (size_t i = 0; i < report.fits.size(); ++i) {
    columns.push_back(Json(report, i));
  }
  const HorovodModel& model = report.options.model;
  const nlohmann::json document = {
      {"source", report.table.source},
      {"scaling", "strong"},
      {"images", report.table.images},
      {"batch_per_rank", report.table.batch_per_rank},
      {"fit_nodes", report.options.fit_nodes},
      {"gradients", model.training.gradients.name},
      {"gradient_bytes", model.training.gradients.total_bytes()},
      {"overlap", model.options.overlap},
      {"cycle_ms", model.options.cycle_ms},
      {"fusion_bytes", model.options.fusion_bytes},
      {"last_batch", model.last_batch == LastBatch::kFull ? "full" : "partial"},
      {"columns", std::move(columns)}};
  return document.dump(2) + "\n";
}

void PrintPredictions(const PredictionReport& report, std::ostream& out) {
  for (const ColumnPrediction& column : report.columns) {
    const PredictionAssumptions assumed = AssumptionsOf(report, column.fit);
    out << "## " << column.fit.column.name << "\n";
    PrintAssumptions("both systems", assumed.both, out);
    PrintAssumptions("Horovod", assumed.horovod, out);
    PrintAssumptions("hvdlite", assumed.hvdlite, out);
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
    const PredictionAssumptions assumed = AssumptionsOf(report, column.fit);
    columns.push_back({{"name", column.fit.column.name},
                       {"assumptions",
                        {{"both", assumed.both},
                         {"horovod", assumed.horovod},
                         {"hvdlite", assumed.hvdlite}}},
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

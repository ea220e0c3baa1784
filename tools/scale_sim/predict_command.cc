// scale_sim predict.
#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "support/flags.h"
#include "tools/scale_sim/commands.h"
#include "tools/scale_sim/epoch_pages.h"
#include "tools/scale_sim/epoch_reports.h"

namespace hvdlite::scale_sim {
namespace {

const std::vector<std::pair<std::string, Addition>>& Additions() {
  static const auto* const additions =
      new std::vector<std::pair<std::string, Addition>>{
          {"core", Addition::kCore},
          {"overlap", Addition::kOverlap},
          {"ranks", Addition::kRanks},
          {"shared-memory", Addition::kSharedMemory}};
  return *additions;
}

// What --add names, and what has flags of its own.
absl::StatusOr<std::vector<Addition>> AdditionsOf(const PredictFlags& flags) {
  std::vector<Addition> found;
  for (const std::string& name : flags.additions) {
    for (const auto& [known, addition] : Additions()) {
      if (known != name) continue;
      if (std::count(found.begin(), found.end(), addition) > 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("--add: '", name, "' is named twice"));
      }
      found.push_back(addition);
    }
  }
  if (!flags.algorithm.empty()) found.push_back(Addition::kAlgorithm);
  if (flags.software_ns_per_byte.has_value()) {
    found.push_back(Addition::kSoftware);
  }
  return found;
}

// With everything that can be added.
HvdliteAssumptions AssumptionsOf(const PredictFlags& flags) {
  HvdliteAssumptions assumptions = flags.assumptions;
  assumptions.ranks_per_node = flags.ranks_per_node;
  assumptions.core = CommunicationCore::kOwn;
  if (flags.core == "shared") assumptions.core = CommunicationCore::kShared;
  if (flags.core == "spare") assumptions.core = CommunicationCore::kSpare;
  assumptions.algorithm = AllreduceAlgorithmNamed(flags.algorithm);
  assumptions.software_ns_per_byte = flags.software_ns_per_byte;
  return assumptions;
}

// The fits to predict from, with the table that they are of.
absl::StatusOr<PredictionReport> Fits(const PredictFlags& flags) {
  PredictionReport report;
  const absl::StatusOr<std::vector<Addition>> additions = AdditionsOf(flags);
  if (!additions.ok()) return additions.status();
  report.variants =
      Ablation(flags.fit.model.options, AssumptionsOf(flags), *additions);
  if (!flags.fit.table.empty()) {
    absl::StatusOr<FitReport> fits = FitTable(flags.fit);
    if (!fits.ok()) return fits.status();
    report.table = std::move(fits->table);
    for (ColumnFit& fit : fits->fits) {
      // Unless it was named, and so is an error.
      if (flags.fit.columns.empty() && fit.column.ranks_per_node != 1) continue;
      report.columns.push_back({.fit = std::move(fit), .predictions = {}});
    }
    if (report.columns.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          flags.fit.table, " has no column with one rank per node"));
    }
    return report;
  }
  absl::StatusOr<HorovodModel> model = ModelOf(flags.fit);
  if (!model.ok()) return model.status();
  report.table = {.source = "flags",
                  .images = flags.images,
                  .batch_per_rank = flags.batch_per_node,
                  .cores_per_node = flags.cores_per_node,
                  .nodes = {},
                  .columns = {}};
  ColumnFit fit;
  fit.column.name = "flags";
  fit.model = *std::move(model);
  report.columns.push_back({.fit = std::move(fit), .predictions = {}});
  return report;
}

void AddHvdliteFlags(CLI::App& app, PredictFlags& flags) {
  HvdliteAssumptions& assumptions = flags.assumptions;
  app.add_option("--add", flags.additions,
                 "hvdlite: what it has besides Horovod's settings, a line for "
                 "each on top of those before it: core, overlap, ranks, "
                 "shared-memory; or none")
      ->delimiter(',')
      ->check(
          CLI::IsMember({"core", "overlap", "ranks", "shared-memory", "none"}))
      ->capture_default_str();
  support::AddPositive(app, "--ranks-per-node", flags.ranks_per_node,
                       "--add ranks: of a node, which share its cores evenly");
  app.add_option("--comm-core", flags.core,
                 "--add core: the coordinator's: one of a rank's (own), a "
                 "computing thread's (shared), one that nobody uses (spare)")
      ->check(CLI::IsMember({"own", "shared", "spare"}))
      ->capture_default_str();
  app.add_option("--busy-share", assumptions.busy_share,
                 "--add core: the part of the time for which it takes a "
                 "shared one")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  support::AddNotNegative(
      app, "--shared-memory-ns-per-byte", assumptions.shared_memory_ns_per_byte,
      "--add shared-memory: per byte that a rank reads in its node");
  support::AddNotNegative(
      app, "--chunk-bytes", assumptions.chunk_bytes,
      "hvdlite: pieces in which a batch is reduced; 0: at once");
  app.add_option("--hvdlite-algorithm", flags.algorithm,
                 "hvdlite: also a line with this algorithm of MPI's allreduce")
      ->check(CLI::IsMember(
          {"recursive-doubling", "ring", "rabenseifner", "fastest"}));
  app.add_option("--hvdlite-software-ns-per-byte", flags.software_ns_per_byte,
                 "hvdlite: also a line with this cost of MPI's software")
      ->check(support::NotNegative());
  HvdliteOptions& options = assumptions.options;
  app.add_option("--arity", options.tree_arity, "hvdlite: of the tree")
      ->check(CLI::Range(1, 31))
      ->capture_default_str();
  support::AddPositive(app, "--steps", options.steps,
                       "hvdlite: steps that are averaged; more than one make a "
                       "difference with jitter");
  app.add_option("--max-simulated-ranks", options.max_simulated_ranks,
                 "hvdlite: of larger worlds so many ranks negotiate; "
                 "collectives take the time of all")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "hvdlite: of jitter")
      ->capture_default_str();
}

}  // namespace

void AddPredictFlags(CLI::App& app, PredictFlags& flags) {
  CLI::Option* table = app.add_option(
      "TABLE", flags.fit.table,
      "Measured epoch times, as JSON, or the results of scaling_sweep, to fit "
      "the model to. Without, "
      "--image-ms and the other parameters are as given");
  app.add_option("--nodes", flags.nodes, "Numbers of nodes to predict")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 18))
      ->capture_default_str();
  app.add_option("--images", flags.images, "Without a table: of an epoch")
      ->check(support::Positive())
      ->excludes(table)
      ->capture_default_str();
  app.add_option("--batch-per-node", flags.batch_per_node,
                 "Without a table: images of a node and step")
      ->check(support::Positive())
      ->excludes(table)
      ->capture_default_str();
  app.add_option("--cores-per-node", flags.cores_per_node, "Without a table")
      ->check(support::Positive())
      ->excludes(table)
      ->capture_default_str();
  AddFitFlags(app, flags.fit);
  AddHvdliteFlags(app, flags);
}

int RunPredict(const PredictFlags& flags) {
  if (!MayWrite(flags.fit.output, "scale_sim predict", flags.fit.table)) {
    return 2;
  }
  absl::StatusOr<PredictionReport> report = Fits(flags);
  if (!report.ok()) {
    std::cerr << "scale_sim predict: " << report.status().message() << "\n";
    return 2;
  }
  int64_t done = 0;
  const int64_t all = std::ssize(report->columns) * std::ssize(flags.nodes) *
                      (1 + std::ssize(report->variants));
  support::ProgressLine line = ProgressOf("prediction", "predictions");
  for (ColumnPrediction& column : report->columns) {
    absl::StatusOr<std::vector<Prediction>> predictions =
        Predict(report->table, column.fit, report->variants, flags.nodes,
                [&] { line.Show(++done, all); });
    if (!predictions.ok()) {
      std::cerr << "scale_sim predict: " << predictions.status().message()
                << "\n";
      return absl::IsInvalidArgument(predictions.status()) ? 2 : 1;
    }
    column.predictions = *std::move(predictions);
  }
  line.Clear();
  PrintPredictions(*report, std::cout);
  return std::max(
      WriteOutput(flags.fit.output.json, PredictionsToJson(*report)),
      WriteOutput(flags.fit.output.html, PredictionsPage(*report)));
}

}  // namespace hvdlite::scale_sim

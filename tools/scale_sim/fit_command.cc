// scale_sim fit.
#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "support/flags.h"
#include "tools/scale_sim/commands.h"
#include "tools/scale_sim/epoch_pages.h"
#include "tools/scale_sim/fit.h"

namespace hvdlite::scale_sim {
namespace {

// Of `size` out of `count`.
int64_t Choices(size_t count, int size) {
  int64_t choices = 1;
  for (int i = 0; i < size; ++i) {
    choices = choices * (static_cast<int64_t>(count) - i) / (i + 1);
  }
  return choices;
}

bool IsNamed(const FitFlags& flags, const EpochColumn& column) {
  return flags.columns.empty() ||
         std::count(flags.columns.begin(), flags.columns.end(), column.name);
}

absl::Status CheckColumns(const FitFlags& flags, const EpochTable& table) {
  std::vector<std::string> names;
  for (const EpochColumn& column : table.columns) names.push_back(column.name);
  for (const std::string& name : flags.columns) {
    if (std::count(names.begin(), names.end(), name)) continue;
    std::string known;
    for (const std::string& other : names) absl::StrAppend(&known, " ", other);
    return absl::InvalidArgumentError(absl::StrCat(
        "--columns: the table has no column '", name, "'; it has", known));
  }
  return absl::OkStatus();
}

// What only a sweep leaves to be said.
absl::Status CheckSweepFlags(const FitFlags& flags) {
  const SweepFacts& facts = flags.sweep;
  for (const auto& [flag, value] :
       {std::pair("--items-per-epoch", facts.items_per_epoch),
        std::pair("--batch-per-rank", facts.batch_per_rank),
        std::pair("--world-batch", facts.world_batch)}) {
    if (value == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " is for the results of a sweep; ", flags.table,
        " says it itself, in images and batch_per_rank: change it there"));
  }
  return absl::OkStatus();
}

absl::StatusOr<EpochTable> ReadTable(const FitFlags& flags) {
  if (IsSweep(flags.table)) return ReadSweepTable(flags.table, flags.sweep);
  if (const absl::Status status = CheckSweepFlags(flags); !status.ok()) {
    return status;
  }
  return ReadEpochTable(flags.table);
}

}  // namespace

void AddFitFlags(CLI::App& app, FitFlags& flags) {
  app.add_option("--columns", flags.columns, "Only these columns of the table")
      ->delimiter(',');
  app.add_option("--fit-nodes", flags.fit_nodes,
                 "Rows that are fitted, by their numbers of nodes; without: "
                 "every other one, or all but the last of a table with fewer "
                 "than six")
      ->delimiter(',')
      ->check(support::Positive());
  app.add_option("--parameters", flags.parameters,
                 "What is fitted, in this order, one per row at most; "
                 "starved-share only where a row has one rank; "
                 "first-batch-share and jitter are for those who name them")
      ->delimiter(',')
      ->capture_default_str();
  for (const FitParameter& parameter : FitParameters()) {
    const std::string name(parameter.name);
    if (name == "first-batch-share") {
      app.add_option("--" + name, flags.first_batch_share,
                     "Where it is not fitted; without: of a table of whole "
                     "epochs --forward-share, else 0")
          ->check(CLI::Range(0.0, parameter.upper));
      continue;
    }
    app.add_option("--" + name, parameter.of(flags.model),
                   "Where it is not fitted")
        ->check(name == "image-ms" ? support::Positive()
                                   : support::NotNegative())
        ->check(CLI::Range(0.0, parameter.upper))
        ->capture_default_str();
  }
  app.add_option("--gradients", flags.gradients,
                 "resnet50-cifar10, resnet50-imagenet, or a file with a line "
                 "per gradient: elements, relative work of backward")
      ->capture_default_str();
  app.add_option("--forward-share", flags.model.training.compute.forward_share,
                 "Of computation, the forward pass")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  AddLinkFlags(app, flags.link);
  app.add_option("--algorithm", flags.algorithm, "Of MPI's allreduce")
      ->check(CLI::IsMember(
          {"recursive-doubling", "ring", "rabenseifner", "fastest"}))
      ->capture_default_str();
  support::AddNotNegative(app, "--cycle-ms", flags.model.options.cycle_ms,
                          "Horovod's cycle time");
  support::AddPositive(app, "--fusion-bytes", flags.model.options.fusion_bytes,
                       "Horovod's fusion threshold");
  app.add_option("--overlap", flags.model.options.overlap,
                 "With Horovod, the part of its speed at which computation "
                 "goes on during an allreduce")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--last-batch", flags.last_batch,
                 "full: an epoch's last step takes a full batch, though fewer "
                 "images are left")
      ->check(CLI::IsMember({"partial", "full"}))
      ->capture_default_str();
  AddOutputFlags(app, flags.output);
  support::AddNotNegative(app, "--items-per-epoch", flags.sweep.items_per_epoch,
                          "Of a sweep: the items of an epoch; 0: its own");
  CLI::Option* const batch =
      app.add_option("--batch-per-rank", flags.sweep.batch_per_rank,
                     "Of a sweep: items of a rank and step");
  batch->check(support::Positive());
  app.add_option("--world-batch", flags.sweep.world_batch,
                 "Of a sweep: items of all ranks and step, if these stay")
      ->check(support::Positive())
      ->excludes(batch);
}

void AddFitCommandFlags(CLI::App& app, FitFlags& flags) {
  app.add_option("TABLE", flags.table,
                 "Measured epoch times, as JSON; or the folder (or table.csv) "
                 "of scaling_sweep's results")
      ->required();
  AddFitFlags(app, flags);
  app.add_flag("--subsets", flags.subsets,
               "Also fit every other choice of as many rows, and tell the "
               "errors over all of them");
  support::AddPositive(
      app, "--bound-percent", flags.bound_percent,
      "Of the held-out median error, which --subsets counts against");
}

absl::StatusOr<HorovodModel> ModelOf(const FitFlags& flags) {
  HorovodModel model = flags.model;
  model.training.compute.first_batch_share =
      flags.first_batch_share.value_or(0);
  absl::StatusOr<GradientSet> gradients = GradientSetNamed(flags.gradients);
  if (!gradients.ok()) return gradients.status();
  model.training.gradients = *std::move(gradients);
  model.training.allreduce.within_node = flags.link.within_node;
  model.training.allreduce.between_nodes = BetweenNodes(flags.link);
  model.training.allreduce.algorithm =
      *AllreduceAlgorithmNamed(flags.algorithm);
  model.last_batch =
      flags.last_batch == "full" ? LastBatch::kFull : LastBatch::kPartial;
  return model;
}

absl::StatusOr<FitReport> FitTable(const FitFlags& flags) {
  FitReport report;
  absl::StatusOr<EpochTable> table = ReadTable(flags);
  if (!table.ok()) return table.status();
  report.table = *std::move(table);
  if (const absl::Status status = CheckColumns(flags, report.table);
      !status.ok()) {
    return status;
  }
  absl::StatusOr<HorovodModel> model = ModelOf(flags);
  if (!model.ok()) return model.status();
  if (report.table.ranks_stand_for_nodes) {
    model->training.allreduce.between_nodes = flags.link.within_node;
  }
  ComputeModel& compute = model->training.compute;
  compute.first_batch_share = flags.first_batch_share.value_or(
      report.table.whole_epochs ? compute.forward_share : 0);
  report.options = {.fit_nodes = flags.fit_nodes.empty()
                                     ? DefaultFitNodes(report.table)
                                     : flags.fit_nodes,
                    .parameters = flags.parameters,
                    .model = *std::move(model)};
  report.bound = flags.bound_percent / 100;
  const auto columns = std::count_if(
      report.table.columns.begin(), report.table.columns.end(),
      [&](const EpochColumn& column) { return IsNamed(flags, column); });
  const auto size = static_cast<int>(report.options.fit_nodes.size());
  const int64_t all =
      columns * (flags.subsets ? Choices(report.table.nodes.size(), size) : 1);
  int64_t done = 0;
  support::ProgressLine line = ProgressOf("fit", "fits");
  const auto show = [&] { line.Show(++done, all); };
  for (const EpochColumn& column : report.table.columns) {
    if (!IsNamed(flags, column)) continue;
    absl::StatusOr<ColumnFit> fit =
        FitColumn(report.table, column, report.options);
    if (!fit.ok()) return fit.status();
    report.fits.push_back(*std::move(fit));
    if (!flags.subsets) {
      show();
      continue;
    }
    absl::StatusOr<Subsets> errors = ErrorsOfSubsets(
        report.table, column, report.options, size, report.bound, show);
    if (!errors.ok()) return errors.status();
    report.subsets.push_back(*errors);
  }
  return report;
}

int RunFit(const FitFlags& flags) {
  if (!MayWrite(flags.output, "scale_sim fit", flags.table)) return 2;
  const absl::StatusOr<FitReport> report = FitTable(flags);
  if (!report.ok()) {
    std::cerr << "scale_sim fit: " << report.status().message() << "\n";
    return 2;
  }
  PrintFit(*report, std::cout);
  return std::max(WriteOutput(flags.output.json, FitToJson(*report)),
                  WriteOutput(flags.output.html, FitPage(*report)));
}

}  // namespace hvdlite::scale_sim

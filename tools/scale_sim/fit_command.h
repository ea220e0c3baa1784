// scale_sim fit: finds a few parameters from a few rows of a table of epoch
// times, predicts the other rows, and tells how far off it is.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/scale_sim/fit_report.h"
#include "tools/scale_sim/link_flags.h"

namespace hvdlite::scale_sim {

// Of the model and the fit; predict has them too.
struct FitFlags {
  std::string table;
  std::vector<std::string> columns;  // empty: all
  std::vector<int> fit_nodes = {1, 2, 8};
  std::vector<std::string> parameters = {"image-ms", "starved-share",
                                         "software-ns-per-byte",
                                         "first-batch-image-ms"};
  HorovodModel model;  // values that are not fitted
  std::string gradients = "resnet50-cifar10";
  LinkFlags link = {.network = "tofu"};
  std::string algorithm = "recursive-doubling";
  std::string last_batch = "partial";
  bool subsets = false;
  double bound_percent = 15;
  std::string json;
};

void AddFitFlags(CLI::App& app, FitFlags& flags);

// The model as the flags describe it, without what is fitted.
absl::StatusOr<HorovodModel> ModelOf(const FitFlags& flags);

// Reads and fits. Errors are the user's.
absl::StatusOr<FitReport> FitTable(const FitFlags& flags);

void AddFitCommandFlags(CLI::App& app, FitFlags& flags);

// Returns the process's exit code.
int RunFit(const FitFlags& flags);

}  // namespace hvdlite::scale_sim

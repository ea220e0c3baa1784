// What the program does: of each command its flags, and a function that runs
// it.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "support/progress_line.h"
#include "tools/scale_sim/epoch_reports.h"
#include "tools/scale_sim/life.h"
#include "tools/scale_sim/network.h"
#include "tools/scale_sim/prediction.h"
#include "tools/scale_sim/simulation.h"
#include "tools/scale_sim/sweep_table.h"

namespace hvdlite::scale_sim {

// Flags for the links between nodes and within one.
struct LinkFlags {
  std::string network;
  LinkParameters within_node = SharedMemoryLink();
  // Instead of the preset's; negative: the preset's.
  LinkParameters between_nodes = {-1, -1, -1, -1};
};

// --network, whose default is `flags.network`, --node-*-us and --net-*-us.
void AddLinkFlags(CLI::App& app, LinkFlags& flags);

LinkParameters BetweenNodes(const LinkFlags& flags);

// --json, --html and --overwrite.
struct OutputFlags {
  std::string json;
  std::string html;
  bool overwrite = false;
};

void AddOutputFlags(CLI::App& app, OutputFlags& flags);

// How far a command is, on standard error: of standard output a table is made.
support::ProgressLine ProgressOf(const std::string& item,
                                 const std::string& items);

// Whether `command` may write these files, though it reads `input`; says why
// not.
bool MayWrite(const OutputFlags& flags, const std::string& command,
              const std::string& input = "");

// Writes `text` to `path`, unless that is empty. Returns the process's exit
// code: 1, with a message, when it cannot be written.
int WriteOutput(const std::string& path, const std::string& text);

// scale_sim without a subcommand: what agreeing on the next batch costs in
// worlds of up to thousands of ranks, which run the real Negotiator.
struct NegotiationFlags {
  SimulationOptions simulation;
  std::vector<int> ranks = {2,   4,   8,    16,   32,   64,   128,
                            256, 512, 1024, 2048, 4096, 8192, 16384};
  std::vector<int> arities = {8};
  std::string topology = "tree";
  std::string workload = "training";
  int tensors = 161;
  LinkFlags link = {.network = "infiniband"};
  OutputFlags output;
};

void AddNegotiationFlags(CLI::App& app, NegotiationFlags& flags);

// Returns the process's exit code.
int RunNegotiation(const NegotiationFlags& flags);

// scale_sim life: what the phases of a world's life cost its busiest rank.
struct LifeFlags {
  LifeOptions life = {.network = {.ranks_per_node = 48}, .measure_cpu = true};
  std::vector<int> ranks = {1, 64, 1024, 4096, 16384};
  bool warnings = false;
  LinkFlags link = {.network = "infiniband"};
};

void AddLifeFlags(CLI::App& app, LifeFlags& flags);

// Returns the process's exit code.
int RunLife(const LifeFlags& flags);

// scale_sim fit: finds a few parameters from a few rows of a table of epoch
// times, predicts the other rows, and tells how far off it is. predict has
// these flags, too, of the model and the fit.
struct FitFlags {
  std::string table;  // or a sweep
  SweepFacts sweep;
  std::vector<std::string> columns;  // empty: all
  std::vector<int> fit_nodes;        // empty: DefaultFitNodes()
  std::vector<std::string> parameters = {"image-ms", "starved-share",
                                         "software-ns-per-byte"};
  HorovodModel model;  // values that are not fitted
  // nullopt: of a table of whole epochs as much as a forward pass, else 0.
  std::optional<double> first_batch_share;
  std::string gradients = "resnet50-cifar10";
  LinkFlags link = {.network = "infiniband"};
  std::string algorithm = "recursive-doubling";
  std::string last_batch = "partial";
  bool subsets = false;
  double bound_percent = 15;
  OutputFlags output;
};

void AddFitFlags(CLI::App& app, FitFlags& flags);

// The model as the flags describe it, without what is fitted and what depends
// on a table.
absl::StatusOr<HorovodModel> ModelOf(const FitFlags& flags);

// Reads and fits. Errors are the user's.
absl::StatusOr<FitReport> FitTable(const FitFlags& flags);

void AddFitCommandFlags(CLI::App& app, FitFlags& flags);

// Returns the process's exit code.
int RunFit(const FitFlags& flags);

// scale_sim predict: epochs with Horovod, as fitted to a table or as flags
// describe them, and what hvdlite would reach under stated assumptions.
struct PredictFlags {
  FitFlags fit;  // without a table nothing is fitted
  int images = 50000;
  int batch_per_node = 512;
  int cores_per_node = 48;
  std::vector<int> nodes = {1, 2, 4, 8, 16, 32, 64, 128, 1024, 8192};
  HvdliteAssumptions assumptions;  // less what can be added
  std::vector<std::string> additions = {"core", "overlap", "ranks",
                                        "shared-memory"};
  int ranks_per_node = 4;
  std::string core = "own";
  std::string algorithm;  // empty: the fit's
  std::optional<double> software_ns_per_byte;
};

void AddPredictFlags(CLI::App& app, PredictFlags& flags);

// Returns the process's exit code.
int RunPredict(const PredictFlags& flags);

}  // namespace hvdlite::scale_sim

// scale_sim simulates the negotiation of up to thousands of ranks.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "support/command_line.h"
#include "support/flags.h"
#include "support/interrupt_notice.h"
#include "support/output_file.h"
#include "support/progress_line.h"
#include "tools/scale_sim/network.h"
#include "tools/scale_sim/report.h"
#include "tools/scale_sim/simulation.h"

namespace hvdlite::scale_sim {
namespace {

struct Flags {
  SimulationOptions simulation;
  std::vector<int> ranks = {2,   4,   8,    16,   32,   64,   128,
                            256, 512, 1024, 2048, 4096, 8192, 16384};
  std::vector<int> arities = {8};
  std::string workload = "training";
  int tensors = 161;
  std::string gradients;  // file with other gradients
  std::string network = "infiniband";
  LinkParameters within_node = SharedMemoryLink();
  // A negative value means the network's value.
  LinkParameters between_nodes = {-1, -1, -1, -1};
  std::string json;
  std::string html;
  bool overwrite = false;
};

void AddFlagsOfLink(CLI::App& app, const std::string& prefix,
                    const std::string& where, LinkParameters& link) {
  app.add_option("--" + prefix + "-latency-us", link.latency_us,
                 "LogGP's L: latency in us, " + where)
      ->check(support::NotNegative());
  app.add_option(
         "--" + prefix + "-overhead-us", link.overhead_us,
         "LogGP's o: a core's time per message sent or received in us, " +
             where)
      ->check(support::NotNegative());
  app.add_option("--" + prefix + "-gap-us", link.gap_us,
                 "LogGP's g: time between messages at a port in us, " + where)
      ->check(support::NotNegative());
  app.add_option("--" + prefix + "-ns-per-byte", link.ns_per_byte,
                 "LogGP's G: time per byte in ns, " + where)
      ->check(support::NotNegative());
}

// Writes `text` to `path`; does nothing if `path` is empty. Returns the
// process's exit code: 1, with a message, if it cannot be written.
int WriteOutput(const std::string& path, const std::string& text) {
  if (path.empty()) return 0;
  const absl::Status status = support::WriteNewFile(path, text);
  if (status.ok()) return 0;
  std::cerr << "scale_sim: " << status.message() << "\n";
  return 1;
}

LinkParameters LinkBetweenNodes(const Flags& flags) {
  LinkParameters link = *LinkPreset(flags.network);
  const auto replace = [](double flag, double& value) {
    if (flag >= 0) value = flag;
  };
  replace(flags.between_nodes.latency_us, link.latency_us);
  replace(flags.between_nodes.overhead_us, link.overhead_us);
  replace(flags.between_nodes.gap_us, link.gap_us);
  replace(flags.between_nodes.ns_per_byte, link.ns_per_byte);
  return link;
}

// Returns the options of the simulation, including the workload.
absl::StatusOr<SimulationOptions> OptionsOf(const Flags& flags) {
  SimulationOptions options = flags.simulation;
  options.network.within_node = flags.within_node;
  options.network.between_nodes = LinkBetweenNodes(flags);
  options.network.seed = options.seed;
  if (!flags.gradients.empty()) {
    HVDLITE_ASSIGN_OR_RETURN(options.workload, ReadGradients(flags.gradients));
  } else if (flags.workload == "one") {
    options.workload = OneTensor();
  } else {
    options.workload = Training(flags.tensors);
  }
  return options;
}

void AddFlags(CLI::App& app, Flags& flags) {
  SimulationOptions& options = flags.simulation;
  app.add_option("--ranks", flags.ranks, "Numbers of ranks, one per world")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  support::AddPositive(app, "--ranks-per-node", options.network.ranks_per_node,
                       "Consecutive ranks on a node");
  app.add_option("--arity", flags.arities, "Arities of the tree, each 1 to 31")
      ->check(CLI::Range(1, 31))
      ->capture_default_str();
  CLI::Option* const workload =
      app.add_option(
             "--workload", flags.workload,
             "Workload: training: gradients of ResNet50, ready at equal "
             "intervals of backward; one: one synchronous allreduce of 4 bytes "
             "per step")
          ->check(CLI::IsMember({"training", "one"}))
          ->capture_default_str();
  CLI::Option* const tensors =
      app.add_option("--tensors", flags.tensors,
                     "Number of gradients per step of training")
          ->check(CLI::Range(1, 161))
          ->capture_default_str();
  app.add_option("--gradients", flags.gradients,
                 "File with the gradients of a training, one per line: number "
                 "of elements, relative work of backward (default: 1)")
      ->excludes(workload)
      ->excludes(tensors);
  support::AddPositive(app, "--steps", options.steps,
                       "Number of measured steps");
  support::AddNotNegative(app, "--warmup", options.warmup_steps,
                          "Number of steps before the measured ones; names are "
                          "announced in the first two");
  support::AddNotNegative(app, "--forward-ms", options.cost.forward_ms,
                          "Duration of the forward pass in ms");
  support::AddNotNegative(
      app, "--backward-ms", options.cost.backward_ms,
      "Duration of the backward pass in ms, in which gradients become ready");
  support::AddNotNegative(app, "--bucket-us", options.cost.bucket_us,
                          "Duration of a bucket in us, after all ranks have "
                          "started it");
  support::AddNotNegative(app, "--bucket-ns-per-byte",
                          options.cost.bucket_ns_per_byte,
                          "Additional duration of a bucket in ns per byte");
  support::MarkFormerSpelling(
      support::AddNotNegative(app, "--batch-us", options.cost.bucket_us, ""),
      "--bucket-us");
  support::MarkFormerSpelling(
      support::AddNotNegative(app, "--batch-ns-per-byte",
                              options.cost.bucket_ns_per_byte, ""),
      "--bucket-ns-per-byte");
  support::AddNotNegative(
      app, "--chunk-bytes", options.cost.chunk_bytes,
      "Size of the pieces of a bucket in bytes; each piece takes --bucket-us; "
      "0: one piece");
  support::AddPositive(app, "--fusion-bytes", options.fusion_threshold_bytes,
                       "Largest bucket of several tensors, in bytes");
  support::AddNotNegative(app, "--min-batch-bytes", options.min_batch_bytes,
                          "Smallest bucket that starts before a rank waits, in "
                          "bytes");
  support::AddNotNegative(
      app, "--gather-us", options.gather_us,
      "How long a background thread collects submissions, in us");
  app.add_option("--network", flags.network,
                 "Network between the nodes (sources of the figures: "
                 "tools/scale_sim/network.cc)")
      ->check(CLI::IsMember({"tcp", "infiniband", "tofu"}))
      ->capture_default_str();
  AddFlagsOfLink(app, "node", "within a node", flags.within_node);
  AddFlagsOfLink(app, "net", "between nodes, instead of the network's",
                 flags.between_nodes);
  support::AddNotNegative(
      app, "--jitter", options.network.jitter,
      "Mean delay of messages as a part of L (exponential distribution)");
  support::AddNotNegative(
      app, "--compute-jitter", options.compute_jitter,
      "Mean delay of computation as a part of it (exponential distribution, "
      "per rank and step)");
  support::AddNotNegative(app, "--stragglers", options.stragglers,
                          "Number of ranks that start every step late");
  support::AddNotNegative(app, "--straggler-delay-ms",
                          options.straggler_delay_ms,
                          "Delay of stragglers in ms");
  app.add_option("--seed", options.seed, "Random seed")->capture_default_str();
  app.add_option("--json", flags.json,
                 "File to which the results are written as JSON");
  app.add_option(
      "--html", flags.html,
      "File to which the results are written as a page for browsers");
  support::AddOverwrite(app, flags.overwrite);
}

int Run(const Flags& flags) {
  const absl::Status writable =
      support::CheckOutputs({{"--json", flags.json}, {"--html", flags.html}},
                            flags.overwrite, {flags.gradients});
  if (!writable.ok()) {
    std::cerr << "scale_sim: " << writable.message() << "\n";
    return 2;
  }
  absl::StatusOr<SimulationOptions> read = OptionsOf(flags);
  if (!read.ok()) {
    std::cerr << "scale_sim: " << read.status().message() << "\n";
    return 2;
  }
  SimulationOptions& options = *read;

  // The time for a gradient grows with the number of ranks.
  int64_t all = 0;
  for (const int ranks : flags.ranks) {
    all += int64_t{ranks} * std::ssize(flags.arities) *
           (options.warmup_steps + options.steps) *
           std::ssize(options.workload.requests);
  }
  int64_t done = 0;
  // Progress goes to standard error, since standard output has the table.
  support::ProgressLine line({.item = "ranks' gradient",
                              .items = "gradients",
                              .style = isatty(STDERR_FILENO) != 0
                                           ? support::ProgressStyle::kTerminal
                                           : support::ProgressStyle::kLog,
                              .out = stderr});
  options.on_progress = [&](int tensors) {
    done += int64_t{options.ranks} * tensors;
    line.Show(done, all);
  };

  std::vector<Row> rows;
  for (const int ranks : flags.ranks) {
    options.ranks = ranks;
    for (const int arity : flags.arities) {
      options.tree_arity = arity;
      const absl::StatusOr<SimulationResult> result = Simulate(options);
      if (!result.ok()) {
        std::cerr << "scale_sim: " << ranks
                  << " ranks: " << result.status().message() << "\n";
        return 1;
      }
      rows.push_back(RowOf(options, *result));
    }
  }
  line.Clear();
  PrintTable(rows, std::cout);
  return std::max(WriteOutput(flags.json, ToJson(options, rows)),
                  WriteOutput(flags.html, ToPage(rows)));
}

int Main(int argc, char** argv) {
  support::TellIfInterrupted("scale_sim",
                             "no file is written; run the same command again");
  CLI::App app(
      "Simulates the negotiation of many ranks in virtual time and prints a "
      "table of its cost. See docs/scaling_sweep.md.",
      "scale_sim");
  support::AddVersion(app);
  Flags flags;
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return support::EndOfParsing(app, error).Tell();
  }
  return Run(flags);
}

}  // namespace
}  // namespace hvdlite::scale_sim

int main(int argc, char** argv) { return hvdlite::scale_sim::Main(argc, argv); }

// scale_sim: the negotiation of up to thousands of ranks, simulated.
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
  std::string gradients;  // a file with others
  std::string network = "infiniband";
  LinkParameters within_node = SharedMemoryLink();
  // Instead of the network's; negative: the network's.
  LinkParameters between_nodes = {-1, -1, -1, -1};
  std::string json;
  std::string html;
  bool overwrite = false;
};

void AddFlagsOfLink(CLI::App& app, const std::string& prefix,
                    const std::string& where, LinkParameters& link) {
  app.add_option("--" + prefix + "-latency-us", link.latency_us,
                 "LogGP's L: latency, " + where)
      ->check(support::NotNegative());
  app.add_option(
         "--" + prefix + "-overhead-us", link.overhead_us,
         "LogGP's o: a core's time per message sent or received, " + where)
      ->check(support::NotNegative());
  app.add_option("--" + prefix + "-gap-us", link.gap_us,
                 "LogGP's g: time between messages at a port, " + where)
      ->check(support::NotNegative());
  app.add_option("--" + prefix + "-ns-per-byte", link.ns_per_byte,
                 "LogGP's G: time per byte, " + where)
      ->check(support::NotNegative());
}

// Writes `text` to `path`, unless that is empty. Returns the process's exit
// code: 1, with a message, when it cannot be written.
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

// With what each rank submits.
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
  app.add_option("--ranks", flags.ranks, "Sizes of worlds")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  support::AddPositive(app, "--ranks-per-node", options.network.ranks_per_node,
                       "Ranks of a node, which are next to each other");
  app.add_option("--arity", flags.arities, "Arities of the tree, each 1 to 31")
      ->check(CLI::Range(1, 31))
      ->capture_default_str();
  CLI::Option* const workload =
      app.add_option(
             "--workload", flags.workload,
             "training: gradients of ResNet50, ready evenly over backward; "
             "one: one synchronous allreduce of 4 bytes per step")
          ->check(CLI::IsMember({"training", "one"}))
          ->capture_default_str();
  CLI::Option* const tensors =
      app.add_option("--tensors", flags.tensors,
                     "Number of gradients per step of training")
          ->check(CLI::Range(1, 161))
          ->capture_default_str();
  app.add_option("--gradients", flags.gradients,
                 "File with the gradients of a training, a line for each: "
                 "elements, relative work of backward (1)")
      ->excludes(workload)
      ->excludes(tensors);
  support::AddPositive(app, "--steps", options.steps,
                       "Steps that are measured");
  support::AddNotNegative(app, "--warmup", options.warmup_steps,
                          "Steps before; names are announced in the first two");
  support::AddNotNegative(app, "--forward-ms", options.cost.forward_ms,
                          "Duration of the forward pass");
  support::AddNotNegative(
      app, "--backward-ms", options.cost.backward_ms,
      "Duration of the backward pass, in which gradients get ready");
  support::AddNotNegative(app, "--batch-us", options.cost.batch_us,
                          "Duration of a batch, once all ranks have begun it");
  support::AddNotNegative(app, "--batch-ns-per-byte",
                          options.cost.batch_ns_per_byte,
                          "Duration of a batch on top, per byte");
  support::AddNotNegative(
      app, "--chunk-bytes", options.cost.chunk_bytes,
      "Size of the pieces of a batch, each of which takes --batch-us; 0: one");
  support::AddPositive(app, "--fusion-bytes", options.fusion_threshold_bytes,
                       "Largest batch of several tensors");
  support::AddNotNegative(app, "--min-batch-bytes", options.min_batch_bytes,
                          "Smallest batch that begins while nobody waits");
  support::AddNotNegative(
      app, "--gather-us", options.gather_us,
      "How long a background thread lets submissions gather");
  app.add_option("--network", flags.network,
                 "Network between the nodes (docs/scale_sim.md says where the "
                 "figures are from)")
      ->check(CLI::IsMember({"tcp", "infiniband", "tofu"}))
      ->capture_default_str();
  AddFlagsOfLink(app, "node", "within a node", flags.within_node);
  AddFlagsOfLink(app, "net", "between nodes, instead of the network's",
                 flags.between_nodes);
  support::AddNotNegative(
      app, "--jitter", options.network.jitter,
      "Mean of the exponential distribution by which messages take "
      "longer, as a part of L");
  support::AddNotNegative(
      app, "--compute-jitter", options.compute_jitter,
      "Mean of the exponential distribution by which computation takes "
      "longer, per rank and step, as a part of it");
  support::AddNotNegative(app, "--stragglers", options.stragglers,
                          "Number of ranks that begin every step late");
  support::AddNotNegative(app, "--straggler-delay-ms",
                          options.straggler_delay_ms,
                          "How late stragglers begin");
  app.add_option("--seed", options.seed, "Random seed")->capture_default_str();
  app.add_option("--json", flags.json, "Also write the results here, as JSON");
  app.add_option("--html", flags.html,
                 "Also draw them here, as a page for browsers");
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

  // What a gradient costs grows with the ranks.
  int64_t all = 0;
  for (const int ranks : flags.ranks) {
    all += int64_t{ranks} * std::ssize(flags.arities) *
           (options.warmup_steps + options.steps) *
           std::ssize(options.workload.requests);
  }
  int64_t done = 0;
  // On standard error: of standard output a table is made.
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
      "Simulates the negotiation of worlds of many ranks in virtual time, and "
      "prints what it costs as a table. See docs/scale_sim.md.",
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

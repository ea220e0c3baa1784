// scale_sim life.
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/flags.h"
#include "support/text_table.h"
#include "tools/scale_sim/commands.h"

namespace hvdlite::scale_sim {

void AddLifeFlags(CLI::App& app, LifeFlags& flags) {
  LifeOptions& options = flags.life;
  app.add_option("--ranks", flags.ranks, "Sizes of worlds")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  support::AddPositive(app, "--ranks-per-node", options.network.ranks_per_node,
                       "Ranks of a node, which are next to each other");
  app.add_option("--arity", options.tree_arity, "Arity of the tree")
      ->check(CLI::Range(1, 31))
      ->capture_default_str();
  app.add_option("--tensors", options.tensors, "Gradients per step")
      ->check(CLI::Range(1, 161))
      ->capture_default_str();
  support::AddPositive(app, "--stalled-tensors", options.stalled_tensors,
                       "Operations that are pending while ranks are late");
  app.add_flag("--cpu,!--no-cpu", options.measure_cpu,
               "Measure CPU time; without, the output is the same anywhere")
      ->capture_default_str();
  app.add_flag("--warnings", flags.warnings, "Also print what users are told");
  AddLinkFlags(app, flags.link);
}

int RunLife(const LifeFlags& flags) {
  LifeOptions options = flags.life;
  SetLinks(flags.link, options.network);
  int64_t all = 0;
  for (const int ranks : flags.ranks) {
    all += int64_t{ranks} * PhasesOfLife(ranks);
  }
  int64_t done = 0;
  support::ProgressLine line = ProgressOf("ranks' phase", "phases");
  options.on_phase = [&] {
    line.Show(done, all);
    done += options.ranks;
  };
  for (const int ranks : flags.ranks) {
    options.ranks = ranks;
    const auto phases = SimulateLife(options);
    if (!phases.ok()) {
      std::cerr << "scale_sim: " << ranks
                << " ranks: " << phases.status().message() << "\n";
      return 1;
    }
    line.Clear();
    std::vector<std::vector<std::string>> rows;
    std::string warnings;
    for (const PhaseLoad& load : *phases) {
      rows.push_back(
          {absl::StrCat(ranks), load.phase,
           absl::StrFormat("%.3f", load.virtual_ms),
           absl::StrCat(load.max_messages), absl::StrCat(load.max_bytes),
           options.measure_cpu ? absl::StrFormat("%.2f", load.max_cpu_ms) : "-",
           absl::StrCat(load.root_messages), absl::StrCat(load.root_bytes),
           absl::StrCat(load.messages)});
      if (!flags.warnings) continue;
      for (const std::string& warning : load.warnings) {
        absl::StrAppend(&warnings, load.phase, ":\n    ", warning, "\n\n");
      }
    }
    std::cout << support::TextTable({"ranks", "phase", "virtual ms",
                                     "busiest: messages", "bytes", "CPU ms",
                                     "root: messages", "bytes", "all messages"},
                                    rows, {.keys = 2})
              << "\n"
              << warnings << std::flush;
  }
  return 0;
}

}  // namespace hvdlite::scale_sim

#include "bench/hvdlite_bench/mode.h"

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "bench/hvdlite_bench/report.h"
#include "bench/hvdlite_bench/workloads.h"
#include "collective/mpi/mpi_library.h"
#include "support/flags.h"
#include "support/output_file.h"

namespace hvdlite::tools {
namespace {

// Parses the size of an array of whole float32 elements.
absl::StatusOr<int64_t> ParseSize(const std::string& text) {
  absl::StatusOr<int64_t> bytes = base::ParseBytes(text);
  if (!bytes.ok()) return bytes;
  if (*bytes < 4 || *bytes > int64_t{8} << 30 || *bytes % 4 != 0) {
    return absl::InvalidArgumentError(
        "must be a multiple of 4, from 4 to 8G, "
        "but is " +
        text);
  }
  return bytes;
}

}  // namespace

void AddSize(CLI::App& command, const std::string& name, int64_t& target,
             const std::string& default_text, const std::string& help) {
  target = *ParseSize(default_text);
  support::AddParsed(command, name, target, ParseSize, help)
      ->type_name("BYTES")
      ->default_str(default_text);
}

std::vector<int64_t> SizeRange::Sizes() const {
  if (min_bytes > max_bytes) {
    throw std::invalid_argument(absl::StrCat("--min-bytes is ", min_bytes,
                                             ", which is above --max-bytes, ",
                                             max_bytes));
  }
  std::vector<int64_t> sizes;
  for (int64_t bytes = min_bytes; bytes <= max_bytes; bytes *= 2) {
    sizes.push_back(bytes);
  }
  return sizes;
}

void AddSizeRange(CLI::App& command, SizeRange& range,
                  const std::string& default_min,
                  const std::string& default_max) {
  AddSize(command, "--min-bytes", range.min_bytes, default_min,
          "Smallest size; the next sizes are twice the one before");
  AddSize(command, "--max-bytes", range.max_bytes, default_max, "Largest size");
}

Results StartResults(const Run& run, int ranks) {
  Results results;
  results.mode = run.mode;
  results.ranks = ranks;
  results.rounds = run.rounds;
  results.machine = run.machine;
  return results;
}

Results StartResults(const Run& run, const MpiWorld& world) {
  Results results = StartResults(run, world.size());
  results.warmup = run.warmup;
  results.machine["mpi"] = collective::MpiLibraryName();
  const bool bound = BoundToOneCoreEach(world.Gather(OwnCores()),
                                        world.Gather(base::HostName()));
  results.machine["ranks"] = bound ? "bound to a core each" : "not bound";
  if (!bound && world.size() > 1) {
    results.notes.push_back(
        "The ranks are not each bound to a core, so times will vary. Run "
        "mpirun --bind-to core, with as many cores as ranks.");
  }
  return results;
}

std::vector<Case> Measure(const Run& run, const MpiWorld& world,
                          std::vector<Plan> plans) {
  NearProbe probe(world.communicator());
  RunRounds(plans, run.rounds, run.warmup, probe);
  std::vector<Case> cases;
  for (Plan& plan : plans) cases.push_back(std::move(plan.result));
  return cases;
}

int Report(const Run& run, const Results& results, int rank) {
  if (rank == 0) {
    if (run.details) PrintDetails(results, std::cout);
    PrintRows(results, std::cout);
    std::cout << std::flush;
    if (!run.json.empty()) support::WriteFile(run.json, ToJson(results));
  }
  return results.exit_code();
}

Mode ProbeMode() {
  return {"probe", "The distance between the cores of ranks 0 and 1",
          [](CLI::App&) {
            return [](const Run& run) {
              const MpiWorld world(run.argc, run.argv, MPI_THREAD_SERIALIZED);
              Results results = StartResults(run, world);
              Plan plan;
              plan.result.name = "ping_pong";
              plan.result.description =
                  "a cache line between ranks 0 and 1, one way";
              plan.result.unit = "ns";
              NearProbe probe(world.communicator());
              plan.Add("memory", Role::kReference, [&] {
                return Sample{probe.Measure(), 0, {}};
              });
              results.cases = Measure(run, world, {plan});
              return Report(run, results, world.rank());
            };
          }};
}

Mode WorkloadsMode() {
  return {"workloads", "Prints the lists of gradients as JSON; needs no mpirun",
          [](CLI::App&) {
            return [](const Run&) {
              nlohmann::ordered_json json;
              for (const Workload& workload : StandardWorkloads()) {
                json[workload.name] = workload.elements;
              }
              std::cout << json << "\n";
              return 0;
            };
          }};
}

}  // namespace hvdlite::tools

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
#include "bench/hvdlite_bench/rounds.h"
#include "bench/hvdlite_bench/workloads.h"
#include "collective/mpi/mpi_library.h"
#include "support/flags.h"

namespace hvdlite::tools {

namespace {

// A size of an array of whole float32 elements.
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
          "Smallest size; it is doubled up to the largest");
  AddSize(command, "--max-bytes", range.max_bytes, default_max, "Largest size");
}

Results StartResults(const Run& run, const MpiWorld& world) {
  Results results;
  results.mode = run.mode;
  results.ranks = world.size();
  results.rounds = run.rounds;
  results.warmup = run.warmup;
  results.machine = run.machine;
  results.machine["mpi"] = collective::MpiLibraryName();
  char host[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  MPI_Get_processor_name(host, &length);
  const bool bound = BoundToOneCoreEach(
      world.Gather(AllowedCpus()), world.Gather(std::string(host, length)));
  results.machine["ranks"] = bound ? "bound to a core each" : "not bound";
  if (!bound && world.size() > 1) {
    results.notes.push_back(
        "The ranks are not bound to a core each: figures will scatter. Run "
        "mpirun --bind-to core, with as many cores as ranks.");
  }
  return results;
}

int Report(const Run& run, const Results& results, int rank) {
  if (rank == 0) {
    if (run.details) PrintDetails(results, std::cout);
    PrintRows(results, std::cout);
    std::cout << std::flush;
    if (!run.json.empty()) WriteJson(results, run.json);
  }
  return results.wrong() == 0 ? 0 : 1;
}

Mode ProbeMode() {
  return {"probe", "How far apart the cores of ranks 0 and 1 are",
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
              std::vector<Plan> plans = {plan};
              RunRounds(plans, run.rounds, run.warmup, probe);
              results.cases.push_back(plans[0].result);
              return Report(run, results, world.rank());
            };
          }};
}

Mode WorkloadsMode() {
  return {"workloads", "Prints the lists of gradients, as JSON; without mpirun",
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

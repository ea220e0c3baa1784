#include "tools/hvdlite_bench/mode.h"

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/hvdlite_bench/rounds.h"
#include "tools/hvdlite_bench/workloads.h"

namespace hvdlite::tools {

Results StartResults(const Run& run, const MpiWorld& world) {
  Results results;
  results.mode = run.mode;
  results.ranks = world.size();
  results.rounds = run.rounds;
  results.warmup = run.warmup;
  results.machine = run.machine;
  results.machine["mpi"] = MpiLibrary();
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
    PrintTable(results, std::cout);
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

#include <memory>

#include "tools/hvdlite_bench/mode.h"
#include "tools/hvdlite_bench/near_probe.h"
#include "tools/hvdlite_bench/rounds.h"

namespace hvdlite::tools {

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

}  // namespace hvdlite::tools

#include <memory>

#include "tools/hvdlite_bench/latency.h"
#include "tools/hvdlite_bench/operation_times.h"
#include "tools/hvdlite_bench/torch_world.h"
#include "tools/support/flag_checks.h"

namespace hvdlite::tools {

Mode LatencyMode() {
  return {"latency",
          "One 4-byte tensor: all ranks waiting, ranks asleep before, ranks "
          "computing",
          [](CLI::App& command) {
            auto operations = std::make_shared<int>(500);
            command
                .add_option("--operations", *operations,
                            "Operations of a round and contender; a fifth of "
                            "them after a pause and while computing")
                ->check(base::Positive())
                ->capture_default_str();
            return [operations](const Run& run) {
              const TorchWorld world(run);
              Results results = StartResults(run, world);
              NearProbe probe(world.mpi().communicator());
              std::vector<Plan> plans = LatencyPlans(world.mpi(), *operations);
              RunRounds(plans, run.rounds, run.warmup, probe);
              for (const Plan& plan : plans) {
                results.cases.push_back(plan.result);
                results.cases.push_back(Percentile99(plan.result));
              }
              return Report(run, results, world.mpi().rank());
            };
          }};
}

}  // namespace hvdlite::tools

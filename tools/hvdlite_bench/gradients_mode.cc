#include <algorithm>
#include <memory>

#include "tools/hvdlite_bench/gradient_steps.h"
#include "tools/hvdlite_bench/gradients.h"
#include "tools/hvdlite_bench/torch_world.h"

namespace hvdlite::tools {
namespace {

struct GradientsFlags {
  std::vector<std::string> workloads = {"resnet50", "transformer",
                                        "1000_of_1_kb", "one_4_bytes"};
  std::vector<std::string> contenders;  // empty: all
  bool steps = true;
};

void KeepOnly(const std::vector<std::string>& contenders, Plan& plan) {
  for (size_t i = plan.samplers.size(); i-- > 0;) {
    const std::string& name = plan.result.contenders[i].name;
    if (std::count(contenders.begin(), contenders.end(), name) != 0) continue;
    plan.result.contenders.erase(plan.result.contenders.begin() + i);
    plan.samplers.erase(plan.samplers.begin() + i);
  }
}

int RunGradients(const GradientsFlags& flags, const Run& run) {
  const TorchWorld world(run);
  Results results = StartResults(run, world);
  const TestValues values(world.mpi().rank(), world.mpi().size());
  NearProbe probe(world.mpi().communicator());
  const auto measure = [&](Plan plan) {
    if (!flags.contenders.empty()) KeepOnly(flags.contenders, plan);
    std::vector<Plan> plans = {std::move(plan)};
    RunRounds(plans, run.rounds, run.warmup, probe);
    results.cases.push_back(std::move(plans[0].result));
  };
  // One after the other: their tensors need not fit into memory together.
  for (const std::string& name : flags.workloads) {
    const Workload workload = WorkloadNamed(name);
    measure(GradientsPlan(workload, world.mpi(), values));
    if (flags.steps) measure(GradientStepsPlan(workload, world.mpi(), values));
  }
  return Report(run, results, world.mpi().rank());
}

}  // namespace

Mode GradientsMode() {
  return {
      "gradients",
      "The tensors of a training step through hvdlite's public API, against "
      "what can be done with MPI alone",
      [](CLI::App& command) {
        auto flags = std::make_shared<GradientsFlags>();
        std::vector<std::string> names;
        for (const Workload& workload : StandardWorkloads()) {
          names.push_back(workload.name);
        }
        command
            .add_option("--workload", flags->workloads,
                        "Only this workload; may be repeated")
            ->check(CLI::IsMember(names));
        command.add_option("--contender", flags->contenders,
                           "Only this one, to profile it; may be repeated");
        command.add_flag("!--no-steps", flags->steps,
                         "Leave out whole steps (zero_grad, backward, "
                         "synchronize)");
        return [flags](const Run& run) { return RunGradients(*flags, run); };
      }};
}

}  // namespace hvdlite::tools

// Creates and writes the report at the end of a training.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <hvdlite/hvdlite.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "support/input_error.h"
#include "support/machine.h"
#include "support/processor.h"
#include "trainers/program.h"
#include "trainers/training.h"

namespace hvdlite::trainers {
namespace {

// Returns whether LibTorch computes with oneDNN.
std::string OneDnn() {
  if (!at::hasMKLDNN()) return "LibTorch was built without it";
  return at::globalContext().userEnabledMkldnn() ? "on" : "off";
}

// Returns the instructions that --bf16 uses.
std::string Bfloat16() {
  const std::set<std::string> flags = support::CpuFlags(
      support::SystemFiles().Text("/proc/cpuinfo").value_or(""));
  const std::string missing = support::MissingBfloat16Instructions(flags);
  if (!missing.empty()) return "emulated, slow: no " + missing;
  const std::string found = support::Bfloat16Instructions(flags);
  return found.empty() ? "not known" : "by " + found;
}

// True if no lower rank runs on this machine. One machine can hold several
// nodes of the world (HVDLITE_VIRTUAL_NODES, containers). Collective.
bool IsFirstOfMachine() {
  const std::vector<std::string> machines =
      allgather_object(support::SystemFiles()
                           .Line("/proc/sys/kernel/random/boot_id")
                           .value_or(support::ThisMachine().host));
  const auto own = machines.begin() + rank();
  return std::find(machines.begin(), own, *own) == own;
}

// Describes this machine, and the CPU use of other programs on all machines.
// Collective.
support::Properties MachineOf(const IntervalMeter& meter) {
  const bool is_first = IsFirstOfMachine();
  const auto cpus = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  const std::vector<double> sums = SumOverRanks(
      {is_first ? cpus : 0, is_first ? meter.cpu_seconds().machine : 0,
       meter.cpu_seconds().process});
  support::Properties machine = support::DescribeMachine();
  const std::string build = build_info();
  machine.emplace_back("oneDNN", OneDnn());
  machine.emplace_back("bfloat16", Bfloat16());
  for (const char* part : {"hvdlite", "LibTorch", "MPI", "UCX"}) {
    machine.emplace_back(part, support::ValueOf(build, part));
  }
  if (meter.wall_seconds() > 0 && sums[1] > 0) {
    machine.emplace_back("other programs",
                         support::DescribeOtherPrograms(
                             (sums[1] - sums[2]) / meter.wall_seconds(),
                             static_cast<int>(sums[0])));
  }
  return machine;
}

std::vector<double> LossesOf(const std::vector<Evaluation>& evaluations) {
  std::vector<double> losses;
  for (const Evaluation& evaluation : evaluations) {
    losses.push_back(evaluation.loss);
  }
  return losses;
}

}  // namespace

Report MakeReport(const ReportSubject& subject, const StepRange& steps,
                  const IntervalMeter& meter, const std::vector<double>& losses,
                  const std::vector<Evaluation>& evaluations,
                  const torch::nn::Module& model) {
  return {.program = subject.program,
          .settings = subject.settings,
          .items = subject.items,
          .data = subject.data,
          .world_size = size(),
          .threads_per_rank = at::get_num_threads(),
          .first_step = steps.first,
          .steps = std::max<int64_t>(steps.last - steps.first, 0),
          .seconds = meter.seconds(),
          .items_per_second = SumOverRanks(meter.items_per_second()),
          .losses = losses,
          .evaluation = evaluations.empty() ? std::nullopt
                                            : std::optional(evaluations.back()),
          .accuracies = AccuraciesOf(evaluations),
          .test_losses = LossesOf(evaluations),
          .parameter_digests = GatherParameterDigests(model),
          .machine = MachineOf(meter)};
}

void SaveReport(const Report& report, const RunFlags& run) {
  try {
    OnAllRanks("save the report", [&] {
      if (rank() != 0) return;
      if (!run.report.empty()) WriteReport(run.report, report);
      if (!run.report_html.empty()) WriteHtmlReport(run.report_html, report);
    });
  } catch (const support::InputError& error) {
    throw SharedError(error.what(), kReportLostExitCode);
  }
}

}  // namespace hvdlite::trainers

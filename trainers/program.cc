#include "trainers/program.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <hvdlite/elastic.h>
#include <hvdlite/hvdlite.h>
#include <torch/types.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <stdexcept>

#include "base/logging.h"
#include "base/new_file.h"
#include "support/input_error.h"
#include "support/interrupt_notice.h"
#include "support/machine.h"
#include "support/processor.h"
#include "timeline/record/trace_format.h"

namespace hvdlite::trainers {
namespace {

enum Outcome : int64_t { kSuccess = 0, kError = 1, kInputError = 2 };

// Returns the `value` of every rank, by rank.
std::vector<int64_t> Gather(int64_t value) {
  torch::Tensor values = torch::zeros({size()}, torch::kInt64);
  values[rank()] = value;
  values =
      allreduce(values, AllreduceOptions().op(ReduceOp::Sum).name("agreement"));
  const int64_t* data = values.data_ptr<int64_t>();
  return {data, data + values.numel()};
}

// "rank 1", "ranks 0, 2" or "all 4 ranks".
std::string NameFailedRanks(const std::vector<int64_t>& outcomes) {
  std::string ranks;
  size_t failed = 0;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i] == kSuccess) continue;
    ranks += (failed++ == 0 ? "" : ", ") + std::to_string(i);
  }
  if (failed == outcomes.size() && failed > 1) {
    return "all " + std::to_string(failed) + " ranks";
  }
  return (failed == 1 ? "rank " : "ranks ") + ranks;
}

// Ends the program after an error that all ranks threw.
int EndTogether(const std::string& name, const std::exception& error,
                int exit_code) {
  if (rank() == 0) std::cerr << name << ": " << error.what() << "\n";
  shutdown();
  return exit_code;
}

// Calls init() without the timeline, which is started later or never. init()
// would replace the trace of an earlier run although this run may still be
// rejected.
void InitWithoutTimeline() {
  Config config = Config::from_env();
  config.timeline.clear();
  config.values_from_environment.erase("timeline");  // not to log a change
  init(config);
}

// Throws support::InputError for an invalid configuration, since a restart
// would not help.
void Init() {
  try {
    InitWithoutTimeline();
  } catch (const c10::ValueError& error) {
    throw support::InputError(error.what_without_backtrace());
  }
}

// Ranks must start the timeline together, as init() would require.
void RequireOneTimeline() {
  const std::vector<std::string> paths =
      allgather_object(Config::from_env().timeline);
  for (size_t other = 1; other < paths.size(); ++other) {
    if (paths[other].empty() == paths[0].empty()) continue;
    throw support::InputError("HVDLITE_TIMELINE is '" + paths[0] +
                              "' on rank 0 and '" + paths[other] +
                              "' on rank " + std::to_string(other) +
                              "; set it on all ranks");
  }
}

int InitAndTrain(const std::string& name, const std::function<void()>& train) {
  Init();
  try {
    while (true) {
      try {
        RequireOneTimeline();
        train();
        break;
      } catch (const WorldBroken&) {
        if (!elastic::replace_world()) throw;
      }
    }
  } catch (const support::InputError& error) {
    return EndTogether(name, error, support::kInputErrorExitCode);
  } catch (const SharedError& error) {
    return EndTogether(name, error, error.exit_code());
  }
  shutdown();
  return 0;
}

}  // namespace

support::Output TraceOutput() {
  const std::string path = Config::from_env().timeline;
  if (!path.empty() && base::IsStream(path)) {
    throw support::InputError("cannot write '" + path +
                              "' (HVDLITE_TIMELINE): it is not a regular file");
  }
  return {"HVDLITE_TIMELINE", path, /*may_exist=*/true};
}

void StartTimeline() {
  std::string path = Config::from_env().timeline;
  if (path.empty()) return;
  for (int world = 0; world < elastic::replaced_worlds(); ++world) {
    path = timeline::PathOfNextWorld(path);
  }
  // Rank 0 has checked its outputs before the training.
  OnAllRanks("record the timeline", [&] {
    if (rank() != 0) support::RequireOutputs({TraceOutput()}, false);
  });
  try {
    start_timeline(path);
  } catch (const WorldBroken&) {
    throw;
  } catch (const c10::Error& error) {
    throw SharedError(MessageOf(error));
  }
}

void SetUpComputing(const ComputeFlags& compute) {
  if (compute.threads > 0) at::set_num_threads(compute.threads);
  // LibTorch allows this call once per process, but a new world in the process
  // repeats SetUpComputing().
  if (compute.inter_op_threads > 0 &&
      static_cast<int>(at::get_num_interop_threads()) !=
          compute.inter_op_threads) {
    at::set_num_interop_threads(compute.inter_op_threads);
  }
  at::globalContext().setUserEnabledMkldnn(!compute.no_onednn);
}

void WarnOfSlowBfloat16(bool enabled) {
  if (!enabled || rank() != 0) return;
  const std::string warning = SlowBfloat16Warning(support::CpuFlags(
      support::SystemFiles().Text("/proc/cpuinfo").value_or("")));
  if (warning.empty()) return;
  base::Logger(base::Severity::kWarning, rank()).Warning(warning);
}

void OnAllRanks(const std::string& what, const std::function<void()>& action) {
  Outcome outcome = kSuccess;
  std::string message;
  try {
    action();
  } catch (const support::InputError& error) {
    outcome = kInputError;
    message = error.what();
  } catch (const std::exception& error) {
    outcome = kError;
    message = MessageOf(error);
  }
  const std::vector<int64_t> outcomes = Gather(outcome);
  const auto first = std::find_if(outcomes.begin(), outcomes.end(),
                                  [](int64_t o) { return o != kSuccess; });
  if (first == outcomes.end()) return;
  message =
      broadcast_object(message, static_cast<int>(first - outcomes.begin()));
  if (!what.empty()) {
    message =
        "cannot " + what + " on " + NameFailedRanks(outcomes) + ": " + message;
  } else if (*first != kInputError) {
    message = NameFailedRanks(outcomes) + ": " + message;
  }
  if (*first == kInputError) throw support::InputError(message);
  throw SharedError(message);
}

void RequireEqualOnAllRanks(const std::string& what,
                            const std::vector<int64_t>& numbers) {
  const torch::Tensor own = torch::tensor(numbers, torch::kInt64);
  const torch::Tensor largest =
      allreduce(own, AllreduceOptions().op(ReduceOp::Max).name("largest"));
  const torch::Tensor smallest =
      allreduce(own, AllreduceOptions().op(ReduceOp::Min).name("smallest"));
  if (largest.equal(smallest)) return;
  throw support::InputError("the ranks have different " + what +
                            "; give all ranks the same files");
}

std::string MessageOf(const std::exception& error) {
  if (const auto* c10_error = dynamic_cast<const c10::Error*>(&error)) {
    return c10_error->what_without_backtrace();
  }
  return error.what();
}

int RunProgram(const std::string& name, const ComputeFlags& compute,
               const std::string& interrupted,
               const std::function<void()>& train) {
  support::TellIfInterrupted(name, interrupted);
  try {
    SetUpComputing(compute);
    return InitAndTrain(name, train);
  } catch (const std::exception& error) {
    // The other ranks notice when this process ends.
    std::string message = name + ": ";
    if (is_initialized()) message += "rank " + std::to_string(rank()) + ": ";
    message += MessageOf(error) + "\n";
    std::cerr << message << std::flush;
    const bool is_input =
        dynamic_cast<const support::InputError*>(&error) != nullptr;
    return is_input ? support::kInputErrorExitCode : 1;
  }
}

int EndEarly(const support::EarlyEnd& end) {
  // The signal is the same on all ranks. Without a working world, every process
  // prints.
  bool prints = true;
  try {
    InitWithoutTimeline();
    prints = rank() == 0;
  } catch (const std::exception&) {
    prints = true;
  }
  if (prints) end.Tell();
  std::cout << std::flush;
  shutdown();  // rank 0 has printed before any process ends
  return end.exit_code;
}

}  // namespace hvdlite::trainers

// The steps around the training that all trainers share, and the handling of
// failures that only some ranks see.
#pragma once

#include <hvdlite/elastic.h>

#include <functional>
#include <string>
#include <vector>

#include "support/command_line.h"
#include "support/output_file.h"
#include "trainers/run_flags.h"
#include "trainers/step.h"

namespace hvdlite::trainers {

// Exit code of a training that was stopped before its last step and can be
// resumed.
inline constexpr int kStoppedEarlyExitCode = elastic::kStoppedExitCode;
// Exit code of a training that this signal stopped. For Ctrl-C it is what
// shells use.
inline int StoppedEarlyBy(int signal) {
  return elastic::stopped_exit_code(signal);
}
// Exit code of a training that is complete and saved, but could not write its
// report (EX_IOERR of sysexits.h).
inline constexpr int kReportLostExitCode = 74;

// Calls init(), `train` and shutdown(), and returns the process's exit code.
// Each rank computes with the settings of `compute`. The timeline starts when
// `train` calls StartTimeline(). Rank 0 prints a SharedError or InputError,
// which all ranks throw together. Any other exception may concern one rank
// only; that rank prints it and ends without waiting. `interrupted` is the text
// for support::TellIfInterrupted when a signal ends the process.
int RunProgram(const std::string& name, const ComputeFlags& compute,
               const std::string& interrupted,
               const std::function<void()>& train);

// Prints the message of `end` once for all ranks, and returns its exit code.
int EndEarly(const support::EarlyEnd& end);

// The body of main() for a program with --checkpoint and --resume.
template <typename Flags>
int RunProgram(const std::string& name,
               const support::CommandLine<Flags>& command_line,
               void (*train)(const Flags&)) {
  if (!command_line.flags) return EndEarly(command_line.end);
  const Flags& flags = *command_line.flags;
  return RunProgram(name, flags.run.compute,
                    "no checkpoint is written now; --resume auto continues "
                    "from an existing checkpoint",
                    [&] { train(flags); });
}

// The trace file of HVDLITE_TIMELINE, as one of the outputs to check before the
// training. Throws InputError if a file of that kind cannot hold a trace.
support::Output TraceOutput();

// Starts the timeline if HVDLITE_TIMELINE is set. Call it when nothing can
// reject the run any more, since it replaces the trace of an earlier run.
// Throws InputError or SharedError on all ranks on failure. Collective.
void StartTimeline();

// Sets threads and kernels of this process; call it before any computation.
// RunProgram() calls it. Repeated calls with the same flags are allowed.
void SetUpComputing(const ComputeFlags& compute);

// If `enabled` (forward passes compute in bfloat16), warns on rank 0 when its
// processor emulates bfloat16.
void WarnOfSlowBfloat16(bool enabled);

// Runs `action`, which must not communicate, and returns when it has succeeded
// on all ranks. If it threw on any rank, throws on every rank, with the message
// of the first failed rank and the list of failed ranks. The exception is an
// InputError if that rank threw one, otherwise a SharedError. So a file that
// one rank cannot read ends all ranks, and none waits for the failed one.
// `what` completes "cannot ..."; if it is empty, an InputError keeps its
// message. Collective.
void OnAllRanks(const std::string& what, const std::function<void()>& action);

// Throws InputError on all ranks, saying that `what` differs between them,
// unless all ranks pass the same vector of numbers. All must pass the same
// length. Collective.
void RequireEqualOnAllRanks(const std::string& what,
                            const std::vector<int64_t>& numbers);

// The message of an exception, without a c10::Error's backtrace.
std::string MessageOf(const std::exception& error);

}  // namespace hvdlite::trainers

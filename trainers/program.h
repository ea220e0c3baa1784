// What every trainer does around its training, and about failures that only
// some ranks see.
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

// A training that was asked to end before its last step, and can be resumed.
inline constexpr int kStoppedEarlyExitCode = elastic::kStoppedExitCode;
// The same for the signal that asked: of Ctrl-C it is what a shell says of it.
inline int StoppedEarlyBy(int signal) {
  return elastic::stopped_exit_code(signal);
}
// A training that is over, and saved, but for its report (EX_IOERR of
// sysexits.h).
inline constexpr int kReportLostExitCode = 74;

// Calls init(), `train` and shutdown(), and returns the process's exit code.
// Each rank computes as `compute` says. The timeline starts when `train` calls
// StartTimeline().
// Rank 0 tells of a SharedError or InputError, which all ranks throw together;
// any other exception may be one rank's alone, which tells and ends without
// waiting. `interrupted` is what support::TellIfInterrupted says of a signal
// that ends the process.
int RunProgram(const std::string& name, const ComputeFlags& compute,
               const std::string& interrupted,
               const std::function<void()>& train);

// Prints `end` once, however many ranks there are; returns its exit code.
int EndEarly(const support::EarlyEnd& end);

// The body of main() of a program with --checkpoint and --resume.
template <typename Flags>
int RunProgram(const std::string& name,
               const support::CommandLine<Flags>& command_line,
               void (*train)(const Flags&)) {
  if (!command_line.flags) return EndEarly(command_line.end);
  const Flags& flags = *command_line.flags;
  return RunProgram(name, flags.run.compute,
                    "nothing is saved now; --resume auto goes on from a "
                    "checkpoint that is there",
                    [&] { train(flags); });
}

// The trace that HVDLITE_TIMELINE names, among the outputs to check before the
// work. Throws InputError if no trace can be of its kind.
support::Output TraceOutput();

// Starts the timeline that HVDLITE_TIMELINE names, if it does: to be called
// once nothing can refuse the run any more, since the trace of an earlier one
// is replaced. Throws InputError or SharedError on all ranks if it cannot be.
// Collective.
void StartTimeline();

// Sets how this process computes, before it does; RunProgram() calls it. May be
// repeated with the same flags.
void SetUpComputing(const ComputeFlags& compute);

// Where forward passes compute in bfloat16 (`enabled`), warns on rank 0 if its
// processor emulates that.
void WarnOfSlowBfloat16(bool enabled);

// Runs `action`, which must not communicate, and returns when it has succeeded
// on all ranks. If it threw anywhere, throws on every rank, with the message of
// the first rank that failed and the ranks that did; an InputError if that rank
// threw one, otherwise a SharedError. So a file that one rank cannot
// read ends all of them instead of leaving the others waiting. `what` completes
// "cannot ..."; empty: an InputError says it itself. Collective.
void OnAllRanks(const std::string& what, const std::function<void()>& action);

// Throws InputError on all ranks, which says that `what` differs between them,
// unless every rank passes the same numbers, as many of them. Collective.
void RequireEqualOnAllRanks(const std::string& what,
                            const std::vector<int64_t>& numbers);

// The message of an exception, without a c10::Error's backtrace.
std::string MessageOf(const std::exception& error);

}  // namespace hvdlite::trainers

// EndNote: what a rank leaves for the process that runs it (hvdliterun's) about
// the end of its world. An exit code does not tell who was first: ranks that
// wait for one that fails fail, too, and often end before it does.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "base/environment.h"

namespace hvdlite::base {

struct EndNote {
  // With which the rank began to exit while its world was whole: what comes
  // after that, such as a signal, is a consequence.
  std::optional<int> exit_code;
  // Else why its world ended, in which the cause, mostly another rank, is
  // named; "" if it has not, or has been left in peace.
  std::string reason;
};

// Names the descriptor below to the rank's process.
inline constexpr char kEndNoteVariable[] = "HVDLITE_END_NOTE_FD";
// Names the pipe of timeline/diagnose/step_report.h to it.
inline constexpr char kStepReportVariable[] = "HVDLITE_STEP_REPORT_FD";

// For who runs the rank: what the rank, which inherits the descriptor, writes
// into; and what stands there when it has ended. Errors: ResourceExhausted.
absl::StatusOr<Descriptor> MakeEndNote();
EndNote ReadEndNote(const Descriptor& note);

// For the rank, in any thread and order; without the variable they do nothing.
void NoteExit(const Environment& environment, int exit_code);
void NoteWorldEnded(const Environment& environment, const std::string& reason);
void NoteWorldLeft(const Environment& environment);  // after shutdown()

}  // namespace hvdlite::base

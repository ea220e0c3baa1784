// EndNote: a rank's note about the end of its world, for the process that runs
// the rank (hvdliterun). Exit codes do not show which rank failed first: ranks
// that wait for a failing rank fail too, and often end before it.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "base/environment.h"

namespace hvdlite::base {

struct EndNote {
  // The code with which the rank began to exit while its world was whole. Later
  // events, such as a signal, are consequences.
  std::optional<int> exit_code;
  // Otherwise: why its world ended. The text names the cause, mostly another
  // rank. "" if the world has not ended, or was left by shutdown().
  std::string reason;
};

// Names the descriptor of the note to the rank's process.
inline constexpr char kEndNoteVariable[] = "HVDLITE_END_NOTE_FD";
// Names the pipe of timeline/diagnose/step_report.h to the rank's process.
inline constexpr char kStepReportVariable[] = "HVDLITE_STEP_REPORT_FD";

// For the process that runs the rank: makes a note, which the rank inherits and
// writes, and reads it after the rank has ended. Errors: ResourceExhausted.
absl::StatusOr<Descriptor> MakeEndNote();
EndNote ReadEndNote(const Descriptor& note);

// For the rank, in any thread and order. Without the variable they do nothing.
void NoteExit(const Environment& environment, int exit_code);
void NoteWorldEnded(const Environment& environment, const std::string& reason);
void NoteWorldLeft(const Environment& environment);  // after shutdown()

}  // namespace hvdlite::base

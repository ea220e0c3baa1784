#include "base/end_note.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hvdlite::base {
namespace {

// Lines are in the order in which they were written.
constexpr absl::string_view kExit = "exit ";
constexpr absl::string_view kEnded = "ended ";
constexpr absl::string_view kLeft = "left";
constexpr size_t kMaxReasonBytes = 1000;

void Write(const Environment& environment, const std::string& line) {
  const std::optional<std::string> text = environment.get(kEndNoteVariable);
  int descriptor = -1;
  if (!text.has_value() || !absl::SimpleAtoi(*text, &descriptor)) return;
  // The descriptor may be another file if the process only inherited the
  // variable.
  if (fcntl(descriptor, F_GET_SEALS) < 0) return;
  (void)!write(descriptor, line.data(), line.size());
}

}  // namespace

absl::StatusOr<Descriptor> MakeEndNote() {
  Descriptor note(memfd_create("hvdlite_end_note", 0));
  if (!note.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("memfd_create: ", std::strerror(errno)));
  }
  return note;
}

EndNote ReadEndNote(const Descriptor& note) {
  std::string text(64 * 1024, '\0');
  const ssize_t bytes = pread(note.get(), text.data(), text.size(), 0);
  text.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
  EndNote result;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    int exit_code = 0;
    if (line == kLeft) {
      result.reason.clear();
    } else if (absl::ConsumePrefix(&line, kEnded)) {
      // The first reason counts.
      if (result.reason.empty()) result.reason = std::string(line);
    } else if (absl::ConsumePrefix(&line, kExit) &&
               absl::SimpleAtoi(line, &exit_code)) {
      // Later lines are consequences of the exit, also kLeft.
      if (result.reason.empty()) result.exit_code = exit_code;
      break;
    }
  }
  return result;
}

void NoteExit(const Environment& environment, int exit_code) {
  Write(environment, absl::StrCat(kExit, exit_code, "\n"));
}

void NoteWorldEnded(const Environment& environment, const std::string& reason) {
  Write(environment,
        absl::StrCat(kEnded,
                     absl::StrReplaceAll(reason.substr(0, kMaxReasonBytes),
                                         {{"\n", " "}}),
                     "\n"));
}

void NoteWorldLeft(const Environment& environment) {
  Write(environment, absl::StrCat(kLeft, "\n"));
}

}  // namespace hvdlite::base

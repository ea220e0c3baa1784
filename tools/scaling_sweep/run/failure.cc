#include "tools/scaling_sweep/run/failure.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tools/scaling_sweep/run/command.h"

namespace hvdlite::scaling_sweep {
namespace {

// Shortens a text for a message, at the end of a UTF-8 character.
std::string Cut(absl::string_view text) {
  constexpr size_t kMaxBytes = 200;
  size_t end = std::min(text.size(), kMaxBytes);
  while (end > 0 && end < text.size() &&
         (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) {
    --end;
  }
  return std::string(text.substr(0, end));
}

// Returns the last two lines that are not empty, because the last one may only
// mention --help. If hvdliterun does not know the cause, returns the remote
// shell's line, or the first line of the launcher's help text, which is between
// lines of dashes.
std::string LastWordsOf(const std::string& file) {
  std::ifstream stream(file);
  std::string shell;
  std::string help;
  std::string last;
  std::string before;
  for (std::string line; std::getline(stream, line);) {
    // hvdliterun quotes a rank's lines with "  | ".
    const absl::string_view text = absl::StripAsciiWhitespace(
        absl::StripPrefix(absl::StripAsciiWhitespace(line), "| "));
    if (text.empty()) continue;
    if (shell.empty() && absl::StartsWith(text, "ssh: ")) shell = Cut(text);
    const bool after_rule =
        !last.empty() && last.find_first_not_of('-') == last.npos;
    if (help.empty() && after_rule) help = Cut(text);
    before = std::exchange(last, Cut(text));
  }
  if (absl::StrContains(last, "no rank reported a failure")) {
    const std::string cause = shell.empty() ? help : shell;
    if (!cause.empty()) before = cause;
  }
  return before.empty() ? last : absl::StrCat(before, " / ", last);
}

// Returns " (Segmentation fault)" for the exit code of a signal.
std::string SignalText(int exit_code) {
  const char* text = exit_code > 128 ? sigdescr_np(exit_code - 128) : nullptr;
  return text == nullptr ? "" : absl::StrCat(" (", text, ")");
}

// Returns the last lines of the output.
std::string EndOfOutput(const std::string& file) {
  constexpr size_t kMostLines = 8;
  std::deque<std::string> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    lines.push_back(Cut(line));
    if (lines.size() > kMostLines) lines.pop_front();
  }
  std::string text;
  for (const std::string& line : lines) {
    absl::StrAppend(&text, "  | ", line, "\n");
  }
  return text;
}

}  // namespace

std::string FailureOf(const support::ChildEnd& end, const RunLimit& limit,
                      const std::string& log) {
  if (end.timed_out) {
    return absl::StrCat("took longer than the limit of ", limit.seconds, " s (",
                        limit.source, ")");
  }
  if (end.exit_code != 0) {
    const std::string words = LastWordsOf(log);
    return absl::StrCat("ended with exit code ", end.exit_code,
                        SignalText(end.exit_code),
                        words.empty() ? "" : "; last output: ", words);
  }
  return "";
}

std::string FirstRunsFailure(const Spec& spec, const Sample& sample,
                             const RunLimit& limit, const std::string& what,
                             const std::string& directory) {
  const std::filesystem::path log =
      std::filesystem::path(directory) / sample.log;
  const std::string printed = EndOfOutput(log.string());
  const bool timed_out = sample.seconds >= limit.seconds;
  return absl::StrCat(
      "'", ShellText({spec.command().begin(), spec.command().end()}),
      "' does not work here, so nothing else is run. ", what, ": ",
      sample.failure,
      printed.empty()
          ? "\nIt printed nothing.\n"
          : absl::StrCat("\nIt printed, in ", log.string(), ":\n", printed),
      timed_out ? "Reduce its work, or raise the limit (--time-limit, "
                  "time_limit_seconds)"
                : "Correct the program or its arguments",
      ". Then run the command again; it starts from the beginning.");
}

}  // namespace hvdlite::scaling_sweep

#include "tools/hvdliterun/rank/launcher_noise.h"

#include <regex.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

namespace hvdlite::launch {
namespace {

constexpr size_t kMaxHeldLines = 100;
constexpr size_t kNoiseLineBytes = 64 << 10;  // launchers' lines are shorter

// Open MPI 4 and 5 put their help texts between two such lines; MPICH uses
// lines of equal signs.
bool IsRule(absl::string_view line) {
  const absl::string_view text = absl::StripAsciiWhitespace(line);
  return text.size() >= 60 &&
         text.find_first_not_of(text.front()) == absl::string_view::npos &&
         (text.front() == '-' || text.front() == '=');
}

// A backtrace of UCX: "==== backtrace (tid:   1234) ====", frames (" 0 0x3c050
// main()" or " 0  /lib/libc.so.6(+0x3c050) [0x7f]"), and a line of '='. Lines
// of other ranks may be between them.
bool BeginsBacktrace(absl::string_view line) {
  return absl::StartsWith(line, "==== backtrace (tid");
}
bool IsFrame(absl::string_view line) {
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(line);
  const size_t end = text.find_first_not_of("0123456789");
  if (end == 0 || end == absl::string_view::npos) return false;
  const absl::string_view frame = absl::StripAsciiWhitespace(text.substr(end));
  return absl::StartsWith(frame, "0x") ||
         (absl::StrContains(frame, ") [0x") && absl::EndsWith(frame, "]"));
}
bool EndsBacktrace(absl::string_view line) {
  const absl::string_view text = absl::StripAsciiWhitespace(line);
  return text.size() >= 8 &&
         text.find_first_not_of('=') == absl::string_view::npos;
}

// Parts of help texts that only report ended ranks, as the summary does.
constexpr absl::string_view kOfEndedRanks[] = {
    "Primary job  terminated normally",
    "Per user-direction, the job has been aborted",
    "detected that one or more processes exited with non-zero status",
    "noticed that process rank",
    "MPI_ABORT was invoked on rank",
    "exiting improperly",
    "exiting without calling \"finalize\"",
    "without calling \"finalize\"",
    "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
};

}  // namespace

bool IsNoiseLine(const std::string& line) {
  // "[n01:04711] PMIX ERROR: ...", "[n01:04711] *** Process received signal
  // ***", "[n01:04711] [ 3] /lib/libc.so.6(+0x3c050)[0x7f]", "[n01:04711] 1
  // more process has sent ..."; UCX's "[n01:4711 :0:4711] Caught signal 11".
  // Messages of MPI about its own errors, and of UCX about a link, are no
  // noise.
  static const auto* const pattern = [] {
    auto* const compiled = new regex_t;
    const int error = regcomp(
        compiled,
        "^("
        "\\[[^] :]+:[0-9]+] (PMIX ERROR|PMIx |UNPACK-|"
        "\\*\\*\\* (Process received signal|End of error message) |"
        "\\[ ?[0-9]+] .*\\[0x[0-9a-f]+]|"
        "Signal: |Signal code: |Failing at address: |Set MCA parameter |"
        "[0-9]+ more process)|"
        "\\[[^] :]+:[0-9]+ *:[0-9]+:[0-9]+] Caught signal |"
        "srun: error: [^[:space:]]+: tasks? [-0-9,]+: "
        "(Exited|Terminated|Killed)|"
        "srun: (Terminating|Job step aborted)|"
        "slurmstepd: error: \\*\\*\\* STEP [^[:space:]]+ ON [^[:space:]]+ "
        "CANCELLED AT [^[:space:]]+ \\*\\*\\*|"
        "\\[[^]]+]\\[\\[[0-9]+,[0-9]+],[0-9]+]\\[[^]]*] "
        "Unable to find reachable pairing |"
        "\\[(mpiexec|proxy:[0-9:]+)@[^]]+] |"
        "Abort\\([0-9]+\\) on node [0-9]+ .*: application called MPI_Abort\\(|"
        "YOUR APPLICATION TERMINATED WITH THE EXIT STRING|"
        "This typically refers to a problem with your application|"
        "Please see the FAQ page for debugging suggestions"
        ")",
        REG_EXTENDED | REG_NOSUB);
    if (error != 0) std::abort();
    return compiled;
  }();
  constexpr size_t kLongEnough = 400;
  return regexec(pattern, line.substr(0, kLongEnough).c_str(), 0, nullptr, 0) ==
         0;
}

LauncherNoise::LauncherNoise(Sink pass_on, Sink leave_out)
    : pass_on_(std::move(pass_on)), leave_out_(std::move(leave_out)) {}

void LauncherNoise::Take(absl::string_view text) {
  if (!begun_) {
    pass_on_(text);
    return;
  }
  while (!text.empty()) {
    const size_t end = text.find('\n');
    unfinished_.append(text.substr(0, end).data(), text.substr(0, end).size());
    if (unfinished_.size() > kNoiseLineBytes) {
      Decide(/*noise=*/false);
      pass_on_(std::exchange(unfinished_, ""));
    }
    if (end == absl::string_view::npos) return;
    text.remove_prefix(end + 1);
    TakeLine(std::exchange(unfinished_, "") + "\n");
  }
}

void LauncherNoise::TakeLine(const std::string& line) {
  held_.push_back(line);
  switch (block_) {
    case Block::kNone:
      if (IsRule(line)) {
        block_ = Block::kHelp;
        return;
      }
      Decide(BeginsBacktrace(line) || IsNoiseLine(line));
      if (BeginsBacktrace(line)) block_ = Block::kBacktrace;
      return;
    case Block::kHelp:
      if (IsRule(line)) {
        const std::string text = absl::StrJoin(held_, "");
        Decide(std::any_of(std::begin(kOfEndedRanks), std::end(kOfEndedRanks),
                           [&](absl::string_view phrase) {
                             return absl::StrContains(text, phrase);
                           }));
      } else if (held_.size() > kMaxHeldLines) {
        Decide(/*noise=*/false);
      }
      return;
    case Block::kBacktrace:
      const bool ends = EndsBacktrace(line);
      Decide(ends || IsFrame(line) || IsNoiseLine(line));
      if (!ends) block_ = Block::kBacktrace;
      return;
  }
}

void LauncherNoise::Decide(bool noise) {
  for (const std::string& line : held_) (noise ? leave_out_ : pass_on_)(line);
  if (noise) lines_left_out_ += static_cast<int>(held_.size());
  held_.clear();
  block_ = Block::kNone;
}

void LauncherNoise::End() {
  Decide(/*noise=*/false);
  if (!unfinished_.empty()) pass_on_(std::exchange(unfinished_, ""));
}

}  // namespace hvdlite::launch

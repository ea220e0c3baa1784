#include "tools/hvdliterun/rank/rank_reports.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tools/hvdliterun/rank/json_line.h"
#include "tools/hvdliterun/rank/launcher_noise.h"

namespace hvdlite::launch {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankFailure, rank, host, exit_code, was_told,
                                   reason, last_lines)

namespace {

// A byte that does not occur in texts ("record separator"), and the prefixes of
// the kinds of reports.
constexpr char kMark = '\x1e';
constexpr absl::string_view kBegin = "\x1ehvdliterun ";
constexpr absl::string_view kSteps = "\x1ehvdlitesteps ";
constexpr absl::string_view kCores = "\x1ehvdlitecores ";
constexpr size_t kMaxReportBytes = 4000;
constexpr size_t kReportLineBytes = 1000;

}  // namespace

std::string ReportLine(const RankFailure& failure) {
  RankFailure shorter = failure;
  for (std::string& line : shorter.last_lines) {
    if (line.size() > kReportLineBytes) line.resize(kReportLineBytes);
  }
  std::string json = JsonLine(shorter);
  while (json.size() + kBegin.size() + 1 > kMaxReportBytes &&
         !shorter.last_lines.empty()) {
    shorter.last_lines.erase(shorter.last_lines.begin());
    json = JsonLine(shorter);
  }
  return absl::StrCat(kBegin, json, "\n");
}

std::string StepReportLine(absl::string_view report) {
  return absl::StrCat(kSteps, report, "\n");
}

std::string CoreReportLine(absl::string_view report) {
  return absl::StrCat(kCores, report, "\n");
}

RankReports::RankReports(std::function<void(absl::string_view)> pass_on,
                         std::function<void(absl::string_view)> take_steps,
                         std::function<void(absl::string_view)> take_cores)
    : pass_on_(std::move(pass_on)),
      take_steps_(std::move(take_steps)),
      take_cores_(std::move(take_cores)) {}

void RankReports::Take(absl::string_view text) {
  while (!text.empty()) {
    if (begun_.empty()) {
      const size_t mark = text.find(kMark);
      if (mark != 0) pass_on_(text.substr(0, mark));
      if (mark == absl::string_view::npos) return;
      text.remove_prefix(mark);
    }
    const size_t end = text.find('\n');
    absl::StrAppend(&begun_, text.substr(0, end));
    if (end == absl::string_view::npos) {
      if (begun_.size() > 2 * kMaxReportBytes) End();
      return;
    }
    text.remove_prefix(end + 1);
    absl::string_view line = begun_;
    std::optional<RankFailure> failure;
    if (absl::ConsumePrefix(&line, kBegin)) {
      failure = FromJsonLine<RankFailure>(line);
    }
    if (failure.has_value() && failure->exit_code == 0) {
      ++successes_;
    } else if (failure.has_value()) {
      failures_.push_back(*std::move(failure));
    } else if (take_steps_ && absl::ConsumePrefix(&line, kSteps)) {
      take_steps_(line);
    } else if (take_cores_ && absl::ConsumePrefix(&line, kCores)) {
      take_cores_(line);
    } else {
      pass_on_(absl::StrCat(begun_, "\n"));
    }
    begun_.clear();
  }
}

void RankReports::End() {
  if (!begun_.empty()) pass_on_(begun_);
  begun_.clear();
}

std::optional<RankFailure> RankReports::First() const {
  std::optional<RankFailure> follower;
  for (const RankFailure& failure : failures_) {
    if (failure.was_told) continue;
    if (failure.reason.empty()) return failure;
    if (!follower.has_value()) follower = failure;
  }
  return follower;
}

void OutputTail::Take(absl::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    absl::StrAppend(&unfinished_, text.substr(0, end));
    // A line without a line end must not grow without limit.
    if (unfinished_.size() > 4 * kReportLineBytes) {
      unfinished_.erase(0, unfinished_.size() - 2 * kReportLineBytes);
    }
    if (end == absl::string_view::npos) return;
    text.remove_prefix(end + 1);
    std::string line = std::exchange(unfinished_, "");
    if (IsNoiseLine(line)) continue;
    lines_.push_back(std::move(line));
    if (lines_.size() > capacity_) lines_.erase(lines_.begin());
  }
}

std::vector<std::string> OutputTail::lines() const {
  std::vector<std::string> lines = lines_;
  if (!unfinished_.empty()) lines.push_back(unfinished_);
  if (lines.size() > capacity_) lines.erase(lines.begin());
  return lines;
}

}  // namespace hvdlite::launch

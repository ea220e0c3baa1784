#include "tools/timeline_viewer/repair.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "timeline/read/trace_event_parser.h"
#include "timeline/read/trace_file.h"

namespace hvdlite::timeline_viewer {
namespace {

using timeline::ParsedEvent;
using timeline::ParseReport;
using timeline::Report;
using timeline::TraceDamage;

constexpr size_t kMostLines = 20;
constexpr size_t kRepairWriteBytes = size_t{1} << 20;

// `bytes` without separators of events at both ends: these are no loss.
absl::string_view WithoutSeparators(absl::string_view bytes) {
  constexpr absl::string_view kSeparators(", \t\r\n\0", 6);
  const size_t first = bytes.find_first_not_of(kSeparators);
  if (first == absl::string_view::npos) return bytes.substr(0, 0);
  return bytes.substr(first, bytes.find_last_not_of(kSeparators) - first + 1);
}

// Copies the complete events of `text` to a file.
class Mender {
 public:
  Mender(absl::string_view text, timeline::OutputFile* out)
      : text_(text), out_(out) {}

  absl::StatusOr<Repair> Run() {
    const ParseReport report = timeline::ParseTraceEvents(
        text_, [this](const ParsedEvent& event) { Keep(event); },
        [this](const TraceDamage& damage) {
          Lose(
              damage.begin, damage.end,
              absl::StrCat("damaged at byte ", damage.at, ", ", damage.reason));
        });
    if (!report.closed) LoseEnd(report);
    if (repair_.events > 0) {
      if (!is_object_) {
        pending_ += "\n]\n";
      } else if (report.tail.empty()) {
        pending_ += "\n]}\n";
      } else {
        absl::StrAppend(&pending_, "\n", report.tail);
      }
      Flush();
    }
    HVDLITE_RETURN_IF_ERROR(status_);
    return std::move(repair_);
  }

 private:
  void Keep(const ParsedEvent& event) {
    if (repair_.events++ > 0) {
      pending_ += ",\n";
    } else {
      FindHead(event.position);
      pending_ = is_object_ ? std::string(head_) : "[\n";
    }
    absl::StrAppend(&pending_, event.text);
    if (pending_.size() >= kRepairWriteBytes) Flush();
  }

  // The text is intact up to `end`, where events begin. 0: it is damaged before
  // the events.
  void FindHead(size_t end) {
    if (!head_.empty()) return;
    head_ = end == 0 ? "[" : text_.substr(0, end);
    const size_t first = head_.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    is_object_ = first != absl::string_view::npos && head_[first] == '{';
  }

  void Lose(size_t begin, size_t end, const std::string& why) {
    FindHead(begin);
    const absl::string_view lost =
        WithoutSeparators(text_.substr(begin, end - begin));
    repair_.lost_bytes += static_cast<int64_t>(lost.size());
    if (repair_.lost.size() < kMostLines) {
      repair_.lost.push_back(
          absl::StrCat(lost.size(), lost.size() == 1 ? " byte" : " bytes",
                       " from byte ", lost.data() - text_.data(), ": ", why));
    }
  }

  void LoseEnd(const ParseReport& report) {
    if (report.cut_off) {
      Lose(report.last_event_end, text_.size(), "cut off within an event");
    } else if (repair_.lost.size() < kMostLines) {
      repair_.lost.push_back(
          "the end of the file: it was missing and has been added");
    }
  }

  void Flush() {
    if (status_.ok()) status_ = out_->Append(pending_);
    pending_.clear();
  }

  const absl::string_view text_;
  timeline::OutputFile* const out_;
  absl::string_view head_;  // the text before the first event
  bool is_object_ = false;
  std::string pending_;
  Repair repair_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Repair> RepairTraceFile(const std::string& path,
                                       const std::string& out) {
  HVDLITE_ASSIGN_OR_RETURN(const timeline::TraceText read,
                           timeline::ReadTraceText(path));
  HVDLITE_ASSIGN_OR_RETURN(const std::unique_ptr<timeline::OutputFile> file,
                           timeline::OutputFile::Open(out));
  HVDLITE_ASSIGN_OR_RETURN(Repair repair, Mender(read.text, file.get()).Run());
  if (repair.events == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " has no complete event: there is nothing to repair"));
  }
  HVDLITE_RETURN_IF_ERROR(file->Commit());
  if (!read.warning.empty()) {
    repair.lost.insert(repair.lost.begin(), read.warning);
  }
  return repair;
}

absl::Status ReportRepair(const std::string& path, const std::string& out,
                          Report* report) {
  HVDLITE_ASSIGN_OR_RETURN(const Repair repair, RepairTraceFile(path, out));
  report->AddLine(absl::StrCat(out, ": ", repair.events,
                               repair.events == 1 ? " event" : " events"));
  if (repair.lost.empty()) report->AddLine("Lost: nothing");
  for (const std::string& line : repair.lost) {
    report->AddLine(absl::StrCat("Lost: ", line));
  }
  report->AddData({.name = "repair",
                   .columns = {"file", "events", "lost_bytes"},
                   .rows = {{out, repair.events, repair.lost_bytes}}});
  return absl::OkStatus();
}

}  // namespace hvdlite::timeline_viewer

#include "tools/timeline_viewer/html_page.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "timeline/read/trace_file.h"
#include "tools/timeline_viewer/page_facts.h"
#include "tools/timeline_viewer/page_rows.h"

namespace hvdlite::timeline_viewer {
namespace {

using timeline::Examined;

// Appends a <script> element with `json`. A "<" is escaped: it could end the
// element.
absl::Status AppendData(absl::string_view id, const std::string& json,
                        timeline::TraceSink* file) {
  return file->Append(absl::StrCat(
      "<script type=\"application/json\" id=\"", id, "\">",
      absl::StrReplaceAll(json, {{"<", "\\u003c"}}), "</script>\n"));
}

absl::Status AppendAllData(const Examined& examined,
                           timeline::TraceSink* file) {
  const PageSpan span = SpanOf(examined.trace);
  const std::vector<PageRow> rows = MakePageRows(examined.trace);
  const std::vector<PageChart> charts = MakePageCharts(examined.trace);
  HVDLITE_RETURN_IF_ERROR(
      AppendData("facts", PageFacts(examined, span, rows, charts), file));
  for (size_t i = 0; i < rows.size(); ++i) {
    HVDLITE_RETURN_IF_ERROR(
        AppendData(absl::StrCat("row", i),
                   RowData(examined.trace, rows[i], span.origin_ns), file));
  }
  return absl::OkStatus();
}

// Returns the frame up to `mark` and removes it, and the mark, from `frame`.
absl::string_view TakeUpTo(absl::string_view mark, absl::string_view* frame) {
  const size_t at = frame->find(mark);
  const absl::string_view before = frame->substr(0, at);
  frame->remove_prefix(at + mark.size());
  return before;
}

}  // namespace

absl::Status WriteHtmlPage(const Examined& examined, const std::string& path) {
  HVDLITE_ASSIGN_OR_RETURN(const std::unique_ptr<timeline::OutputFile> file,
                           timeline::OutputFile::Open(path));
  absl::string_view frame = kPageFrame;
  const absl::string_view before_style = TakeUpTo(kPageStyleMark, &frame);
  const absl::string_view before_data = TakeUpTo(kPageDataMark, &frame);
  const absl::string_view before_script = TakeUpTo(kPageScriptMark, &frame);
  HVDLITE_RETURN_IF_ERROR(
      file->Append(absl::StrCat(before_style, kPageStyle, before_data)));
  HVDLITE_RETURN_IF_ERROR(AppendAllData(examined, file.get()));
  HVDLITE_RETURN_IF_ERROR(
      file->Append(absl::StrCat(before_script, kPageScript, frame)));
  return file->Commit();
}

}  // namespace hvdlite::timeline_viewer

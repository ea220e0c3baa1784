// A trace as one HTML file that needs nothing else: what a step's time is made
// of, findings, and all ranks on one time axis.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "timeline/report/examined.h"

namespace hvdlite::timeline_viewer {

// The page's own parts, from html/: made at build time.
extern const absl::string_view kPageFrame;  // with the marks below
extern const absl::string_view kPageStyle;
extern const absl::string_view kPageScript;
inline constexpr absl::string_view kPageStyleMark = "/*STYLE*/";
inline constexpr absl::string_view kPageDataMark = "<!--DATA-->";
inline constexpr absl::string_view kPageScriptMark = "/*SCRIPT*/";

// Writes the page to `path`, whole or not at all (timeline::OutputFile). Errors
// name the file.
absl::Status WriteHtmlPage(const timeline::Examined& examined,
                           const std::string& path);

}  // namespace hvdlite::timeline_viewer

// Writes a trace as one HTML file that needs no other files. It shows the parts
// of a step, the findings, and all ranks on one time axis.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "timeline/report/examined.h"

namespace hvdlite::timeline_viewer {

// The texts of the page, made from html/ at build time.
extern const absl::string_view kPageFrame;  // contains the marks below
extern const absl::string_view kPageStyle;
extern const absl::string_view kPageScript;
inline constexpr absl::string_view kPageStyleMark = "/*STYLE*/";
inline constexpr absl::string_view kPageDataMark = "<!--DATA-->";
inline constexpr absl::string_view kPageScriptMark = "/*SCRIPT*/";

// Writes the page to `path` atomically (timeline::OutputFile). Errors name the
// file.
absl::Status WriteHtmlPage(const timeline::Examined& examined,
                           const std::string& path);

}  // namespace hvdlite::timeline_viewer

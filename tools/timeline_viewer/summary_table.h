// A trace's summary as a table for people.
#pragma once

#include <string>

#include "timeline/trace_summary.h"

namespace hvdlite::timeline_viewer {

enum class SortBy { kSelf, kWall, kName, kCount };

// One line per event name, with wall duration, self time and average wall
// duration in milliseconds and the number of occurrences; then the totals. The
// largest come first; kName sorts from A to Z.
std::string RenderTable(const timeline::TraceSummary& summary, SortBy sort_by);

// `text` with what would disturb a terminal (control characters) replaced by
// '?'.
std::string Printable(const std::string& text);

}  // namespace hvdlite::timeline_viewer

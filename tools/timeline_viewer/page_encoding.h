// How numbers and texts of a trace stand in an HTML page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "timeline/read/trace_reader.h"
#include "tools/timeline_viewer/page_rows.h"

namespace hvdlite::timeline_viewer {

// Appends 7 bits a byte, the lowest first; all bytes but the last have 0x80.
void AppendVarint(uint64_t value, std::string* bytes);
// The same of 0, -1, 1, -2, ... as 0, 1, 2, 3, ...
void AppendSigned(int64_t value, std::string* bytes);

// Appends the slices of `row`: how many; their starts, each less the end of the
// one before, signed, the first less `origin_ns`; their durations; their names;
// then of each what it says: a byte whose bits tell which fields follow (batch,
// tensors, bytes, last rank, lateness in us, picked up less the start, step,
// text), and these, signed.
void AppendSlices(const timeline::Trace& trace, const PageRow& row,
                  int64_t origin_ns, std::string* bytes);

// Appends the levels of `row`: how many; of each how many nodes, and of each
// node its start less the end of the one before (signed), its length, busy time
// and name.
void AppendLevels(const PageRow& row, int64_t origin_ns, std::string* bytes);

// Appends of each line: how many points; their times, each less the one before,
// signed, the first less `origin_ns`; their values as float32, little endian.
void AppendChart(const PageChart& chart, int64_t origin_ns, std::string* bytes);

// `json` with <, > and & in texts as \u003c and so on: it can stand in a script
// element whatever its texts are.
std::string ScriptSafe(absl::string_view json);

}  // namespace hvdlite::timeline_viewer

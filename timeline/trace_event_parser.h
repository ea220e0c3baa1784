// Finds the events in the text of a Chrome trace, however damaged.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "timeline/trace_event.h"

namespace hvdlite::timeline {

// An event as it stands in the file: "ph" says which fields have a meaning.
struct ParsedEvent {
  char phase = 0;    // ph: 'X', 'B', 'E', 'M', ...; 0 if missing
  std::string name;  // empty if missing
  int64_t pid = 0;   // text in place of a number becomes a negative number
  int64_t tid = 0;
  std::optional<int64_t> start_ns;  // ts; also missing if not a sane time
  int64_t duration_ns = 0;          // dur
  bool has_bad_duration = false;    // negative or not a sane time

  std::vector<TraceArg> args;  // those that are numbers or texts
};

struct ParseReport {
  int64_t events = 0;          // complete ones
  bool cut_off = false;        // the text ends within an event
  bool closed = false;         // the text has its end
  int64_t damaged_places = 0;  // skipped
  size_t first_damage_byte = 0;
  std::string first_damage;  // what was wrong there
};

// Calls `consume` for every complete event of `text`, in order. Takes an array
// of events or an object with such an array at "traceEvents". The array need
// not be closed, may have a comma after its last event, and the text may end
// anywhere. After damage, parsing goes on at the next line that begins an
// event. Overwrites some bytes of `text` (separators before such lines).
ParseReport ParseTraceEvents(
    std::string* text, const std::function<void(const ParsedEvent&)>& consume);

}  // namespace hvdlite::timeline

// Finds the events in the text of a Chrome trace, however damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "timeline/read/parsed_event.h"

namespace hvdlite::timeline {

// A place of the text that holds no whole event.
struct TraceDamage {
  size_t begin = 0;  // after the last whole event, or damage
  size_t end = 0;    // where the next event begins, or the text ends
  size_t at = 0;     // the first wrong byte
  std::string reason;
};

struct ParseReport {
  int64_t events = 0;          // complete ones
  bool cut_off = false;        // the text ends within an event
  bool closed = false;         // the text has its end
  int64_t damaged_places = 0;  // skipped
  size_t first_damage_byte = 0;
  std::string first_damage;  // what was wrong there

  size_t last_event_end = 0;  // or where events begin, if there is none
  // Of an object: what stands before its first event, the '[' included. Empty:
  // the text is an array, or is damaged there.
  absl::string_view head;
  // If the text is closed: what stands after the last event, from ']' on.
  absl::string_view tail;
};

// Calls `consume` for every complete event of `text`, in order. Takes an array
// of events or an object with such an array at "traceEvents". The array need
// not be closed, may have a comma after its last event, and the text may end
// anywhere. After damage, parsing goes on at the next line that begins an
// event, or at the next event of a line that holds several; `on_damage`, if
// there is one, hears of it.
ParseReport ParseTraceEvents(
    absl::string_view text,
    const std::function<void(const ParsedEvent&)>& consume,
    const std::function<void(const TraceDamage&)>& on_damage = {});

}  // namespace hvdlite::timeline

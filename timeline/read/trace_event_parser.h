// Finds the events in the text of a Chrome trace, however damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "timeline/read/parsed_event.h"

namespace hvdlite::timeline {

// A part of the text without a complete event.
struct TraceDamage {
  size_t begin = 0;  // end of the last complete event or damage
  size_t end = 0;    // where the next event begins, or the text ends
  size_t at = 0;     // the first wrong byte
  std::string reason;
};

struct ParseReport {
  int64_t events = 0;          // complete events
  bool cut_off = false;        // the text ends within an event
  bool closed = false;         // the text is complete
  int64_t damaged_places = 0;  // skipped
  size_t first_damage_byte = 0;
  std::string first_damage;  // what was wrong there

  size_t last_event_end = 0;  // without events: the place of the first
  // The text before the first event, including the '[', if the text is an
  // object. Empty if it is an array, or is damaged there.
  absl::string_view head;
  // The text after the last event, from ']' on, if the text is closed.
  absl::string_view tail;
};

// Calls `consume` for every complete event of `text`, in order. `text` is an
// array of events, or an object with such an array at "traceEvents". It may end
// anywhere, and the array may have a comma after its last event. After damage,
// parsing continues at the next line that begins an event, or at the next event
// of a line that holds several. `on_damage` is called for each damage; it may
// be empty.
ParseReport ParseTraceEvents(
    absl::string_view text,
    const std::function<void(const ParsedEvent&)>& consume,
    const std::function<void(const TraceDamage&)>& on_damage = {});

}  // namespace hvdlite::timeline

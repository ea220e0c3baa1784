// Finds the events in the text of a Chrome trace, however damaged.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvdlite::timeline {

// One of an event's args that is a number or a text.
struct ParsedArg {
  absl::string_view key;
  std::variant<int64_t, double, absl::string_view> value;
};

// An event as it stands in the file: "ph" says which fields have a meaning.
// What it points to lives until the next event.
struct ParsedEvent {
  char phase = 0;          // ph: 'X', 'B', 'E', 'M', ...; 0 if missing
  absl::string_view name;  // empty if missing
  int64_t pid = 0;  // text in place of a number becomes a negative number
  int64_t tid = 0;
  std::optional<int64_t> start_ns;  // ts; also missing if not a sane time
  int64_t duration_ns = 0;          // dur
  bool has_bad_duration = false;    // negative or not a sane time

  absl::string_view id;       // of a flow; a number's digits
  absl::string_view bind_id;  // of the flow that goes in or out
  bool flow_in = false;
  bool flow_out = false;

  std::vector<ParsedArg> args;  // those that are numbers or texts

  absl::string_view text;  // all of it, from '{' to '}', within the file's
  size_t position = 0;     // of that

  void Clear();  // keeps the memory of args
};

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

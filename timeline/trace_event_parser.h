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

  std::vector<ParsedArg> args;  // those that are numbers or texts

  absl::string_view text;  // all of it, from '{' to '}', within the file's

  void Clear();  // keeps the memory of args
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
// event, or at the next event of a line that holds several.
ParseReport ParseTraceEvents(
    absl::string_view text,
    const std::function<void(const ParsedEvent&)>& consume);

}  // namespace hvdlite::timeline

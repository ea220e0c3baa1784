// An event as it stands in a trace's text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvdlite::timeline {

// One of an event's args that is a number or a text.
struct ParsedArg {
  absl::string_view key;
  std::variant<int64_t, double, absl::string_view> value;
};

// "ph" says which fields have a meaning.
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

}  // namespace hvdlite::timeline

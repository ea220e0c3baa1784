// An event as it is in the text of a trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvdlite::timeline {

// An argument of an event that is a number or a string.
struct ParsedArg {
  absl::string_view key;
  std::variant<int64_t, double, absl::string_view> value;
};

// `phase` decides which other fields have a meaning. Views are valid until the
// next event.
struct ParsedEvent {
  char phase = 0;          // ph: 'X', 'B', 'E', 'M', ...; 0 if missing
  absl::string_view name;  // empty if missing
  int64_t pid = 0;  // a string instead of a number becomes a negative number
  int64_t tid = 0;
  std::optional<int64_t> start_ns;  // ts; nullopt if missing or not a sane time
  int64_t duration_ns = 0;          // dur
  bool has_bad_duration = false;    // negative or not a sane time

  absl::string_view id;       // of a flow; a number as its digits
  absl::string_view bind_id;  // of the flow that starts or ends here
  bool flow_in = false;
  bool flow_out = false;

  std::vector<ParsedArg> args;  // only numbers and strings

  absl::string_view text;  // the event from '{' to '}', in the file's text
  size_t position = 0;     // of `text` in the file

  void Clear();  // keeps the memory of args
};

}  // namespace hvdlite::timeline

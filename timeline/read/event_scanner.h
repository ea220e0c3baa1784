// Reads the events of a trace that are written plainly, as nearly all are, some
// ten times as fast as a parser of all of JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "timeline/read/parsed_event.h"

namespace hvdlite::timeline {

// Times beyond this (95 years) are no times; sums of two still fit.
inline constexpr int64_t kLatestTimeUs = 3'000'000'000'000'000;

// Reads the JSON object at the front of `text` into `event`. Returns its
// length; 0 if it is not written plainly, or no JSON: then `event` holds
// anything, and a parser of all of JSON has to tell. Plain are objects whose
// texts are ASCII without escapes, whose numbers have no exponent, and whose
// fields have the types that Chrome's format asks for.
size_t ScanEvent(absl::string_view text, ParsedEvent* event);

// The time that `number`, a JSON number in microseconds without an exponent,
// tells, rounded to ns; nullopt if it is beyond kLatestTimeUs.
std::optional<int64_t> TimeOf(absl::string_view number);

}  // namespace hvdlite::timeline

// Pieces of JSON, appended to a string.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace hvdlite::timeline {

// Appends `text` in quotes, escaped. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(absl::string_view text, std::string* out);

// Appends `value` with all its digits; null if it is not finite.
void AppendJsonNumber(double value, std::string* out);

// Appends `time_ns` in microseconds with three decimals, such as "12.345".
void AppendMicroseconds(int64_t time_ns, std::string* out);

}  // namespace hvdlite::timeline

#include "timeline/json_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace hvdlite::timeline {
namespace {

bool NeedsNoEscape(char c) {
  return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

}  // namespace

void AppendJsonString(absl::string_view text, std::string* out) {
  if (std::all_of(text.begin(), text.end(), NeedsNoEscape)) {
    absl::StrAppend(out, "\"", text, "\"");
    return;
  }
  out->append(nlohmann::json(std::string(text))
                  .dump(/*indent=*/-1, /*indent_char=*/' ',
                        /*ensure_ascii=*/false,
                        nlohmann::json::error_handler_t::replace));
}

void AppendJsonNumber(double value, std::string* out) {
  if (!std::isfinite(value)) {
    out->append("null");
    return;
  }
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  out->append(digits, end.ptr);
}

void AppendMicroseconds(int64_t time_ns, std::string* out) {
  uint64_t magnitude_ns = static_cast<uint64_t>(time_ns);
  if (time_ns < 0) {
    out->push_back('-');
    magnitude_ns = 0 - magnitude_ns;
  }
  absl::StrAppend(out, magnitude_ns / 1000, ".",
                  absl::Dec(magnitude_ns % 1000, absl::kZeroPad3));
}

}  // namespace hvdlite::timeline

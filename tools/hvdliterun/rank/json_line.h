// Lines of JSON that are sent through a launcher's standard error.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace hvdlite::launch {

// The line, without its line end.
template <typename Value>
std::string JsonLine(const Value& value) {
  // The output of ranks may be invalid UTF-8.
  return nlohmann::json(value).dump(-1, ' ', /*ensure_ascii=*/true,
                                    nlohmann::json::error_handler_t::replace);
}

// nullopt: the line is not such a value.
template <typename Value>
std::optional<Value> FromJsonLine(absl::string_view line) {
  try {
    return nlohmann::json::parse(line.begin(), line.end()).get<Value>();
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace hvdlite::launch

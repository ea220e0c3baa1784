// What travels through a launcher's standard error, as lines of JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace hvdlite::launch {

// Without its end.
template <typename Value>
std::string JsonLine(const Value& value) {
  // What ranks print need not be valid text.
  return nlohmann::json(value).dump(-1, ' ', /*ensure_ascii=*/true,
                                    nlohmann::json::error_handler_t::replace);
}

// nullopt: it is none of such a value.
template <typename Value>
std::optional<Value> FromJsonLine(absl::string_view line) {
  try {
    return nlohmann::json::parse(line.begin(), line.end()).get<Value>();
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace hvdlite::launch

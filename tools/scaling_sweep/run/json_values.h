// Reads values from JSON of other programs.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace hvdlite::scaling_sweep {

// Returns an integer from `least` to the largest int; nullopt for other values.
template <typename AnyJson>
std::optional<int> WholeNumber(const AnyJson& value, int least) {
  constexpr int kMost = std::numeric_limits<int>::max();
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.template get<uint64_t>() > kMost)) {
    return std::nullopt;
  }
  const auto number = value.template get<int64_t>();
  if (number < least || number > kMost) return std::nullopt;
  return static_cast<int>(number);
}

// Returns the entries of an object that are strings; none if it is no object.
template <typename AnyJson>
std::map<std::string, std::string> TextsIn(const AnyJson& object) {
  std::map<std::string, std::string> texts;
  if (!object.is_object()) return texts;
  for (const auto& [name, value] : object.items()) {
    if (value.is_string()) texts[name] = value.template get<std::string>();
  }
  return texts;
}

}  // namespace hvdlite::scaling_sweep

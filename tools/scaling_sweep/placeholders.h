// Placeholders in the words of a command: {report}, {ranks}, ...
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "google/protobuf/repeated_field.h"

namespace hvdlite::scaling_sweep {

using Words = google::protobuf::RepeatedPtrField<std::string>;

// InvalidArgument for "{name}" in lower case letters and '_' that is none of
// ours, with the nearest one that is.
absl::Status CheckPlaceholderNames(const Words& words);

// `word` with every "{name}" that `values` has replaced, in one pass.
std::string FillIn(const std::string& word,
                   const std::map<std::string, std::string>& values);

}  // namespace hvdlite::scaling_sweep

// What a misspelt word of a SPEC may have meant.
#pragma once

#include <string>

namespace hvdlite::scaling_sweep {

// Of an error of Protobuf's parser about a field or an enumeration value that
// is not known: what is, and the nearest, as "did you mean command?"; "" for
// other errors.
std::string HintFor(const std::string& parser_error);

}  // namespace hvdlite::scaling_sweep

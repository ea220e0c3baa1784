// Text inside HTML and SVG.
#pragma once

#include <string>

namespace hvdlite::base {

// `text` with the characters escaped that HTML gives a meaning, also inside
// attributes in double quotes.
std::string EscapeHtml(const std::string& text);

}  // namespace hvdlite::base

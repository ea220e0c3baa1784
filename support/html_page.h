// Pages for browsers that take nothing from elsewhere.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/chart.h"

namespace hvdlite::support {

// Names and values, in the order in which they are shown.
using Properties = std::vector<std::pair<std::string, std::string>>;

// `text` with the characters escaped that HTML gives a meaning, also inside
// attributes in double quotes.
std::string EscapeHtml(const std::string& text);

// A table with a line for each of `properties`, below a heading, if that is
// not empty; "" if there are none. Text is escaped.
std::string PropertyTable(const std::string& heading,
                          const Properties& properties);

// The chart below its title as a heading.
std::string ChartSection(const Chart& chart);

// A whole document: `body` is HTML, and follows the title as a heading.
std::string HtmlPage(const std::string& title, const std::string& body);

}  // namespace hvdlite::support

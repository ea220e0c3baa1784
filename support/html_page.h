// Self-contained HTML pages.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/chart.h"

namespace hvdlite::support {

// Names and values in the order of display.
using Properties = std::vector<std::pair<std::string, std::string>>;

// `text` with HTML's special characters escaped, also for attributes in double
// quotes.
std::string EscapeHtml(const std::string& text);

// A table with a line for each of `properties`, below `heading` unless that is
// empty; "" if there are no properties. Text is escaped.
std::string PropertyTable(const std::string& heading,
                          const Properties& properties);

// A chart below a heading with its title.
std::string ChartSection(const Chart& chart);

// A whole document: the title as a heading, then `body`, which is HTML.
std::string HtmlPage(const std::string& title, const std::string& body);

}  // namespace hvdlite::support

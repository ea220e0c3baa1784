// Curves as SVG, and as a page that any browser shows, offline.
#pragma once

#include <string>
#include <vector>

namespace hvdlite::support {

// Values that are not finite are left out.
struct Curve {
  std::string name;
  std::vector<double> values;
  // Where along the horizontal axis each value stands; empty: at 1, 2, ..., as
  // one for each interval or epoch.
  std::vector<double> x = {};
  // Ends of each value's error bar; empty: no bars. One that is not finite is
  // left out.
  std::vector<double> low = {};
  std::vector<double> high = {};
  bool dashed = false;  // a line without dots, for what is ideal
};

struct Chart {
  std::string title;
  std::string x_label;  // what is counted along the horizontal axis
  std::vector<Curve> curves;
  // A logarithmic axis shows positive numbers only, with a line of the grid at
  // each power of two.
  bool log2_x = false;
  bool log2_y = false;
  bool y_from_zero = false;  // of an axis that is not logarithmic
};

// CSS rules for a page that has ChartSvg's elements.
std::string ChartStyle();

// A chart without its title: an <svg> element for an HTML page.
std::string ChartSvg(const Chart& chart);

// The same as a whole SVG document, its title as a <title>.
std::string ChartDocument(const Chart& chart);

// A whole HTML document with the charts as SVG and nothing from elsewhere.
// `lines` stand above them, as text.
std::string ChartsPage(const std::string& title,
                       const std::vector<std::string>& lines,
                       const std::vector<Chart>& charts);

// `text` with the characters escaped that HTML gives a meaning, also inside
// attributes in double quotes.
std::string EscapeHtml(const std::string& text);

}  // namespace hvdlite::support

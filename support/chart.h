// Curves as SVG.
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
  bool dashed = false;  // a grey line without dots, for what is ideal
};

// Its numbers are round: ticks are 1, 2 or 5 times a power of ten apart, and
// the vertical axis begins and ends with one. The names of the curves stand
// below it, if there are several.
struct Chart {
  std::string title;
  std::string x_label;       // what is counted along the horizontal axis
  std::string y_label = {};  // with its unit; stands above the vertical axis
  std::vector<Curve> curves;
  // A logarithmic axis shows positive numbers only.
  bool log_x = false;
  bool log_y = false;
  bool y_from_zero = false;  // of an axis that is not logarithmic
};

// CSS rules for a page that has ChartSvg's elements.
std::string ChartStyle();

// A chart without its title: an <svg> element for an HTML page.
std::string ChartSvg(const Chart& chart);

// The same as a whole SVG document, below its title.
std::string ChartDocument(const Chart& chart);

// Round numbers that include both ends, `most` (3 or more) at most: 1, 2 or 5
// times a power of ten apart; for a logarithmic axis (of ends above 0) 1, 2 and
// 5 times powers of ten, or the powers of ten alone if those are too many. If
// those would be less than four, as from 140 to 190, as though it was none.
std::vector<double> RoundTicks(double low, double high, bool log, int most);

}  // namespace hvdlite::support

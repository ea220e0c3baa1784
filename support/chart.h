// Draws curves as SVG.
#pragma once

#include <string>
#include <vector>

namespace hvdlite::support {

// One curve of a chart. Values that are not finite are left out.
struct Curve {
  std::string name;
  std::vector<double> values;
  // Horizontal position of each value; empty: 1, 2, ..., such as for intervals
  // or epochs.
  std::vector<double> x = {};
  // Ends of each value's error bar; empty: no bars. Bars with an end that is
  // not finite are left out.
  std::vector<double> low = {};
  std::vector<double> high = {};
  bool dashed = false;  // grey without dots, for an ideal
};

// A chart. Ticks are 1, 2 or 5 times a power of ten apart, and the vertical
// axis begins and ends with a tick. If there are several curves, their names
// are below it.
struct Chart {
  std::string title;
  std::string x_label;       // quantity on the horizontal axis
  std::string y_label = {};  // with unit, above the axis
  std::vector<Curve> curves;
  // A logarithmic axis shows positive numbers only.
  bool log_x = false;
  bool log_y = false;
  bool y_from_zero = false;  // if the axis is not logarithmic
};

// CSS rules for a page that contains ChartSvg() elements.
std::string ChartStyle();

// A chart without title: an <svg> element for an HTML page.
std::string ChartSvg(const Chart& chart);

// A chart with title: a whole SVG document.
std::string ChartDocument(const Chart& chart);

// At most `most` (3 or more) round numbers whose range includes both ends.
// Linear: 1, 2 or 5 times a power of ten apart. Logarithmic (both ends above
// 0): 1, 2 and 5 times powers of ten, or only the powers if those are too many.
// A logarithmic axis with fewer than four ticks, such as from 140 to 190, gets
// linear ticks.
std::vector<double> RoundTicks(double low, double high, bool log, int most);

}  // namespace hvdlite::support

// Curves of a training as a page that any browser shows, offline.
#pragma once

#include <string>
#include <vector>

namespace hvdlite::trainers {

// One value for each interval (or epoch), from the first on. Values that are
// not finite are left out.
struct Curve {
  std::string name;
  std::vector<double> values;
};

struct Chart {
  std::string title;
  std::string x_label;  // what is counted along the horizontal axis, from 1
  std::vector<Curve> curves;
};

// A whole HTML document with the charts as SVG and nothing from elsewhere.
// `lines` stand above them, as text.
std::string ChartsPage(const std::string& title,
                       const std::vector<std::string>& lines,
                       const std::vector<Chart>& charts);

}  // namespace hvdlite::trainers

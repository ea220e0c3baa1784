// One axis of a chart: from values to shares of its length.
#pragma once

#include <vector>

namespace hvdlite::base {

class ChartAxis {
 public:
  explicit ChartAxis(bool log2) : log2_(log2) {}

  // Whether the axis can show `value`.
  bool Shows(double value) const;

  // Makes the axis long enough for `value`, if it can show it at all.
  void Include(double value);

  // Ends the making: an axis of no length becomes one of length 1 around its
  // value, or from 0 to 1 (a logarithmic one: 1 to 2) if it has none.
  void Finish();

  // 0 at the axis's beginning, 1 at its end.
  double Share(double value) const;

  // Where lines of the grid go: `count` at equal distances, or the powers of
  // two if it is logarithmic (the ends, if there are fewer than two).
  std::vector<double> GridValues(int count) const;

 private:
  double Place(double value) const;

  const bool log2_;
  bool empty_ = true;
  double low_ = 0;
  double high_ = 0;
};

}  // namespace hvdlite::base

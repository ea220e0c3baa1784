#include "tools/support/chart_axis.h"

#include <algorithm>
#include <cmath>

namespace hvdlite::base {

bool ChartAxis::Shows(double value) const {
  return std::isfinite(value) && (!log2_ || value > 0);
}

void ChartAxis::Include(double value) {
  if (!Shows(value)) return;
  low_ = empty_ ? value : std::min(low_, value);
  high_ = empty_ ? value : std::max(high_, value);
  empty_ = false;
}

void ChartAxis::Finish() {
  if (empty_) {
    low_ = log2_ ? 1 : 0;
    high_ = low_ + 1;
  } else if (low_ == high_) {
    low_ = log2_ ? low_ / std::sqrt(2) : low_ - 0.5;
    high_ = log2_ ? high_ * std::sqrt(2) : high_ + 0.5;
  }
  empty_ = false;
}

double ChartAxis::Place(double value) const {
  return log2_ ? std::log2(value) : value;
}

double ChartAxis::Share(double value) const {
  return (Place(value) - Place(low_)) / (Place(high_) - Place(low_));
}

std::vector<double> ChartAxis::GridValues(int count) const {
  std::vector<double> values;
  if (log2_) {
    const double first = std::ceil(std::log2(low_) - 1e-9);
    const double last = std::floor(std::log2(high_) + 1e-9);
    for (double power = first; power <= last; ++power) {
      values.push_back(std::exp2(power));
    }
    if (values.size() < 2) values = {low_, high_};
    return values;
  }
  for (int line = 0; line < count; ++line) {
    values.push_back(low_ + (high_ - low_) * line / (count - 1));
  }
  return values;
}

}  // namespace hvdlite::base

#include "support/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <vector>

#include "absl/strings/str_format.h"
#include "support/html_page.h"

namespace hvdlite::support {
namespace {

// Multiples of 1, 2 or 5 times a power of ten: the smallest step that gives at
// most `most` ticks.
std::vector<double> LinearTicks(double low, double high, int most) {
  constexpr double kSlack = 1e-9;  // relative to a step
  const double least = std::max(1e-300, (high - low) / 1000);
  for (double power = std::pow(10, std::floor(std::log10(least)));;
       power *= 10) {
    for (const double digit : {1, 2, 5}) {
      const double step = digit * power;
      const double first = std::floor(low / step + kSlack);
      const double last = std::ceil(high / step - kSlack);
      if (last - first >= most) continue;
      std::vector<double> ticks;
      for (double tick = first; tick <= last; ++tick) {
        ticks.push_back(tick * step);
      }
      return ticks;
    }
  }
}

std::vector<double> LogarithmicTicks(double low, double high, int most) {
  constexpr double kSlack = 1e-9;
  std::vector<double> ticks;
  const auto last = static_cast<int>(std::ceil(std::log10(high) - kSlack));
  for (const bool powers_alone : {false, true}) {
    ticks.clear();
    for (auto power = static_cast<int>(std::floor(std::log10(low) + kSlack));
         power <= last; ++power) {
      for (const double digit : {1, 2, 5}) {
        if (powers_alone && digit > 1) continue;
        const double tick = digit * std::pow(10, power);
        // Keeps only the last tick up to `low`, and stops at the first from
        // `high`.
        if (tick <= low * (1 + kSlack)) ticks.clear();
        if (!ticks.empty() && ticks.back() >= high * (1 - kSlack)) continue;
        ticks.push_back(tick);
      }
    }
    if (static_cast<int>(ticks.size()) <= most) return ticks;
  }
  // Uses every second power, every third, and so on.
  const size_t stride = (ticks.size() + static_cast<size_t>(most) - 2) /
                        (static_cast<size_t>(most) - 1);
  std::vector<double> few;
  for (size_t i = 0;; i += stride) {
    few.push_back(ticks.front() * std::pow(10, i));
    if (few.back() >= high * (1 - kSlack)) return few;
  }
}

// One axis of a chart; converts values to fractions of its length.
class ChartAxis {
 public:
  explicit ChartAxis(bool log) : log_(log) {}

  // Whether the axis can show `value`.
  bool Shows(double value) const {
    return std::isfinite(value) && (!log_ || value > 0);
  }

  // Extends the axis to `value` if the axis can show it.
  void Include(double value) {
    if (!Shows(value)) return;
    low_ = empty_ ? value : std::min(low_, value);
    high_ = empty_ ? value : std::max(high_, value);
    empty_ = false;
  }

  // Completes the axis. An axis with one value extends around it. An axis
  // without values covers 0 to 1 (logarithmic: 1 to 2).
  void Finish() {
    if (empty_) {
      low_ = log_ ? 1 : 0;
      high_ = low_ + 1;
    } else if (high_ - low_ <=
               1e-12 * std::max(std::abs(low_), std::abs(high_))) {
      const double half = low_ == 0 ? 0.5 : std::abs(low_) / 4;
      low_ -= half;
      high_ += half;
    }
    empty_ = false;
  }

  // After Finish(): round ticks. The axis now ends at the outermost ticks.
  std::vector<double> EndWithTicks(int most) {
    std::vector<double> ticks = RoundTicks(low_, high_, log_, most);
    low_ = ticks.front();
    high_ = ticks.back();
    return ticks;
  }

  // After Finish(): round whole numbers within the axis.
  std::vector<double> WholeNumbers(int most) const {
    std::vector<double> numbers;
    for (const double tick : LinearTicks(low_, high_, most)) {
      const double whole = std::round(tick);
      if (std::abs(tick - whole) < 1e-6 && whole >= low_ && whole <= high_) {
        numbers.push_back(whole);
      }
    }
    return numbers;
  }

  // Position along the axis: 0 at its beginning, 1 at its end.
  double Share(double value) const {
    return (Place(value) - Place(low_)) / (Place(high_) - Place(low_));
  }

 private:
  double Place(double value) const { return log_ ? std::log(value) : value; }

  const bool log_;
  bool empty_ = true;
  double low_ = 0;
  double high_ = 0;
};

// Sizes in the SVG image, in pixels.
constexpr double kPlotWidth = 600;
constexpr double kPlotHeight = 260;
constexpr double kMargin = 12;
constexpr double kLine = 18;        // height of a line of text
constexpr double kCharacter = 7;    // upper limit of the average width
constexpr double kErrorBarEnd = 3;  // half the width of an end
constexpr double kSample = 22;      // line sample before a curve's name
constexpr double kBetweenNames = 18;
constexpr int kMostTicks = 7;
constexpr int kMostWholeNumbers = 12;
// Colours of the first curves, which colour-blind people can distinguish, too
// (Okabe and Ito, 2008).
constexpr std::array<const char*, 7> kColours = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7",
    "#e69f00", "#56b4e9", "#000000"};

// Gives each curve its own colour. After kColours, hues are a golden angle
// apart, and every second colour is darker.
std::string ColourOf(size_t index) {
  if (index < kColours.size()) return kColours[index];
  constexpr double kGoldenAngle = 137.508;
  constexpr double kSaturation = 0.65;
  const double hue = std::fmod(kGoldenAngle * static_cast<double>(index), 360);
  const double lightness = index % 2 == 0 ? 0.45 : 0.3;
  const auto channel = [&](double offset) {
    const double k = std::fmod(offset + hue / 30, 12);
    const double share =
        lightness -
        kSaturation * lightness * std::clamp(std::min(k - 3, 9 - k), -1.0, 1.0);
    return static_cast<int>(std::lround(255 * share));
  };
  return absl::StrFormat("#%02x%02x%02x", channel(0), channel(8), channel(4));
}
constexpr char kIdealColour[] = "#777777";

constexpr char kDrawingStyle[] =
    "svg text{font-size:12px;font-family:sans-serif}"
    ".grid{stroke:#ddd}.curve{fill:none;stroke-width:2}";

std::string Format(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
std::string Pixels(double value) { return Format("%.1f", value); }

// "0.5", "250", "20k", "3M".
std::string Number(double value) {
  const double size = std::abs(value);
  if (size >= 1e9) return Format("%.5gG", value / 1e9);
  if (size >= 1e6) return Format("%.5gM", value / 1e6);
  if (size >= 1e4) return Format("%.5gk", value / 1e3);
  return Format("%.5g", value);
}

double DrawnWidth(const std::string& text) {
  return kCharacter * static_cast<double>(text.size());
}

double XOf(const Curve& curve, size_t point) {
  if (point < curve.x.size()) return curve.x[point];
  return static_cast<double>(point + 1);
}

std::string Text(double x, double y, const char* anchor,
                 const std::string& text) {
  return "<text x=\"" + Pixels(x) + "\" y=\"" + Pixels(y) +
         "\" text-anchor=\"" + anchor + "\">" + EscapeHtml(text) + "</text>\n";
}

std::string Line(const std::string& attributes, double x1, double y1, double x2,
                 double y2) {
  return "<line " + attributes + " x1=\"" + Pixels(x1) + "\" x2=\"" +
         Pixels(x2) + "\" y1=\"" + Pixels(y1) + "\" y2=\"" + Pixels(y2) +
         "\"/>\n";
}

class Drawing {
 public:
  // If `titled`, the title is drawn above the chart.
  Drawing(const Chart& chart, bool titled)
      : chart_(chart), x_(chart.log_x), y_(chart.log_y) {
    MakeAxes();
    double labels = 0;
    for (const double tick : y_ticks_) {
      labels = std::max(labels, DrawnWidth(Number(tick)));
    }
    left_ = kMargin + labels + 8;
    double right = kMargin;
    if (!x_ticks_.empty()) {
      left_ =
          std::max(left_, kMargin + DrawnWidth(Number(x_ticks_.front())) / 2);
      right += DrawnWidth(Number(x_ticks_.back())) / 2;
    }
    title_height_ = titled && !chart.title.empty() ? kLine : 0;
    top_ = kMargin + title_height_ + (chart.y_label.empty() ? 0 : kLine);
    width_ =
        std::max({left_ + kPlotWidth + right,
                  2 * kMargin + DrawnWidth(chart.title) * title_height_ / kLine,
                  2 * kMargin + DrawnWidth(chart.y_label)});
    PlaceNames();
  }

  // `attributes` are added to the <svg> tag; `inside` comes first in it.
  std::string Svg(const std::string& attributes,
                  const std::string& inside) const {
    std::string svg = "<svg" + attributes + " width=\"" +
                      Format("%.0f", width_) + "\" height=\"" +
                      Format("%.0f", height_) + "\" viewBox=\"0 0 " +
                      Format("%.0f", width_) + " " + Format("%.0f", height_) +
                      "\" role=\"img\">\n" + inside;
    if (title_height_ > 0) {
      svg += Text(kMargin, kMargin + 6, "start", chart_.title);
    }
    if (!chart_.y_label.empty()) {
      svg += Text(kMargin, top_ - 12, "start", chart_.y_label);
    }
    for (const double tick : y_ticks_) {
      svg +=
          Line("class=\"grid\"", left_, Y(tick), left_ + kPlotWidth, Y(tick)) +
          Text(left_ - 8, Y(tick) + 4, "end", Number(tick));
    }
    const double bottom = top_ + kPlotHeight;
    for (const double tick : x_ticks_) {
      svg += Line("class=\"grid\"", X(tick), bottom, X(tick), bottom + 5) +
             Text(X(tick), bottom + kLine, "middle", Number(tick));
    }
    svg += Text(left_ + kPlotWidth / 2, bottom + 2 * kLine, "middle",
                chart_.x_label);
    for (size_t i = 0; i < chart_.curves.size(); ++i) svg += DrawCurve(i);
    for (size_t i = 0; i < names_.size(); ++i) svg += DrawName(i);
    return svg + "</svg>\n";
  }

 private:
  struct Place {
    double x = 0;
    double y = 0;
  };

  void MakeAxes() {
    std::set<double> x_values;
    bool numbered = true;  // no curve has x values
    for (const Curve& curve : chart_.curves) {
      numbered = numbered && curve.x.empty();
      for (size_t i = 0; i < curve.values.size(); ++i) {
        x_.Include(XOf(curve, i));
        y_.Include(curve.values[i]);
        if (x_.Shows(XOf(curve, i))) x_values.insert(XOf(curve, i));
      }
      for (const double end : curve.low) y_.Include(end);
      for (const double end : curve.high) y_.Include(end);
    }
    if (chart_.y_from_zero && !chart_.log_y) y_.Include(0);
    // A numbered axis with one value begins at that value; on other axes a
    // single value is in the middle.
    if (numbered && x_values.size() < 2) {
      x_.Include(1);
      x_.Include(2);
    }
    x_.Finish();
    y_.Finish();
    y_ticks_ = y_.EndWithTicks(kMostTicks);
    if (numbered) {
      x_ticks_ = x_.WholeNumbers(kMostWholeNumbers);
      return;
    }
    // Labels those x values that have room, beginning with the largest: powers
    // of two are close together at the small end.
    double free = 2 * kPlotWidth;
    for (auto value = x_values.rbegin(); value != x_values.rend(); ++value) {
      const double middle = x_.Share(*value) * kPlotWidth;
      const double half = DrawnWidth(Number(*value)) / 2 + 2;
      if (middle + half > free) continue;
      x_ticks_.insert(x_ticks_.begin(), *value);
      free = middle - half;
    }
  }

  // Names are in lines below the axis, as wide as the picture. A longer name
  // widens the picture.
  void PlaceNames() {
    height_ = top_ + kPlotHeight + 2 * kLine + kMargin;
    if (chart_.curves.size() < 2) return;
    double x = left_;
    double y = top_ + kPlotHeight + 3 * kLine + 6;
    for (const Curve& curve : chart_.curves) {
      const double wide = kSample + 6 + DrawnWidth(curve.name);
      if (x > left_ && x + wide > width_ - kMargin) {
        x = left_;
        y += kLine;
      }
      names_.push_back({x, y});
      width_ = std::max(width_, x + wide + kMargin);
      x += wide + kBetweenNames;
    }
    height_ = y + kMargin;
  }

  double X(double value) const { return left_ + x_.Share(value) * kPlotWidth; }
  double Y(double value) const {
    return top_ + (1 - y_.Share(value)) * kPlotHeight;
  }

  // SVG attributes of a curve's lines.
  std::string Stroke(size_t index) const {
    if (chart_.curves[index].dashed) {
      return std::string("class=\"curve\" stroke=\"") + kIdealColour +
             "\" stroke-dasharray=\"6 4\"";
    }
    return "class=\"curve\" stroke=\"" + ColourOf(index) + "\"";
  }
  std::string DrawName(size_t index) const {
    const auto [x, y] = names_[index];
    return Line(Stroke(index), x, y - 4, x + kSample, y - 4) +
           Text(x + kSample + 6, y, "start", chart_.curves[index].name);
  }
  std::string ErrorBar(const Curve& curve, size_t point,
                       const std::string& stroke) const {
    if (point >= curve.low.size() || point >= curve.high.size()) return "";
    if (!y_.Shows(curve.low[point]) || !y_.Shows(curve.high[point])) return "";
    const double x = X(XOf(curve, point));
    const std::string low = Pixels(Y(curve.low[point]));
    const std::string high = Pixels(Y(curve.high[point]));
    const std::string left = Pixels(x - kErrorBarEnd);
    const std::string right = Pixels(x + kErrorBarEnd);
    return "<path " + stroke + " d=\"M" + left + "," + low + "H" + right + "M" +
           left + "," + high + "H" + right + "M" + Pixels(x) + "," + low + "V" +
           high + "\"/>\n";
  }
  std::string DrawCurve(size_t index) const {
    const Curve& curve = chart_.curves[index];
    std::string points;
    std::string dots;
    for (size_t i = 0; i < curve.values.size(); ++i) {
      if (!y_.Shows(curve.values[i]) || !x_.Shows(XOf(curve, i))) continue;
      const std::string x = Pixels(X(XOf(curve, i)));
      const std::string y = Pixels(Y(curve.values[i]));
      points += (points.empty() ? "" : " ") + x + "," + y;
      dots += ErrorBar(curve, i, Stroke(index));
      if (curve.dashed) continue;
      dots += "<circle cx=\"" + x + "\" cy=\"" + y + "\" r=\"2.5\" fill=\"" +
              ColourOf(index) + "\"/>\n";
    }
    return "<polyline " + Stroke(index) + " points=\"" + points + "\"/>\n" +
           dots;
  }

  const Chart& chart_;
  ChartAxis x_;
  ChartAxis y_;
  std::vector<double> x_ticks_;
  std::vector<double> y_ticks_;
  double left_ = 0;
  double top_ = 0;
  double title_height_ = 0;
  double width_ = 0;
  double height_ = 0;
  std::vector<Place> names_;  // of the curves; empty: not shown
};

}  // namespace

std::vector<double> RoundTicks(double low, double high, bool log, int most) {
  if (!log) return LinearTicks(low, high, most);
  std::vector<double> ticks = LogarithmicTicks(low, high, most);
  if (ticks.size() >= 4) return ticks;
  const std::vector<double> linear = LinearTicks(low, high, most);
  return linear.front() > 0 ? linear : ticks;
}

std::string ChartStyle() { return kDrawingStyle; }

std::string ChartSvg(const Chart& chart) {
  return Drawing(chart, /*titled=*/false).Svg("", "");
}

std::string ChartDocument(const Chart& chart) {
  return Drawing(chart, /*titled=*/true)
      .Svg(" xmlns=\"http://www.w3.org/2000/svg\"",
           "<title>" + EscapeHtml(chart.title) + "</title>\n<style>" +
               kDrawingStyle + "</style>\n");
}

}  // namespace hvdlite::support

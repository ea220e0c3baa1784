#include "tools/support/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <vector>

namespace hvdlite::support {
namespace {

// One axis of a chart: from values to shares of its length.
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

// In pixels, of an SVG image.
constexpr double kWidth = 640;
constexpr double kHeight = 320;
constexpr double kLeft = 64;
constexpr double kRight = 16;
constexpr double kTop = 16;
constexpr double kBottom = 40;
constexpr double kErrorBarEnd = 3;  // half the width of its ends
constexpr int kGridLines = 5;
// Of the curves, in turn; told apart by colour-blind people, too (Okabe and
// Ito, 2008).
constexpr std::array<const char*, 7> kColours = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7",
    "#e69f00", "#56b4e9", "#000000"};

constexpr char kDrawingStyle[] =
    "text{font-size:12px}.grid{stroke:#ddd}.curve{fill:none;stroke-width:2}";
constexpr char kPageStyle[] = "body{font:14px sans-serif;margin:2em}";

std::string Format(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
std::string Pixels(double value) { return Format("%.1f", value); }

double XOf(const Curve& curve, size_t point) {
  if (point < curve.x.size()) return curve.x[point];
  return static_cast<double>(point + 1);
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart)
      : chart_(chart), x_(chart.log2_x), y_(chart.log2_y) {
    bool numbered = true;  // no curve says where its values stand
    for (const Curve& curve : chart.curves) {
      numbered = numbered && curve.x.empty();
      for (size_t i = 0; i < curve.values.size(); ++i) {
        x_.Include(XOf(curve, i));
        y_.Include(curve.values[i]);
        x_values_.insert(XOf(curve, i));
      }
      for (const double end : curve.low) y_.Include(end);
      for (const double end : curve.high) y_.Include(end);
    }
    if (chart.y_from_zero && !chart.log2_y) y_.Include(0);
    // A numbered axis of one value begins with it; others have it in the
    // middle.
    if (numbered && x_values_.size() < 2) {
      x_.Include(1);
      x_.Include(2);
    }
    if (numbered && x_values_.size() > 2) {
      x_values_ = {*x_values_.begin(), *x_values_.rbegin()};
    }
    if (numbered && x_values_.empty()) x_values_ = {1};
    x_.Finish();
    y_.Finish();
  }

  // `attributes` go into the <svg> tag, `inside` to its beginning.
  std::string Svg(const std::string& attributes,
                  const std::string& inside) const {
    std::string svg = "<svg" + attributes + " width=\"" + Pixels(kWidth) +
                      "\" height=\"" + Pixels(kHeight) + "\" role=\"img\">\n" +
                      inside;
    for (const double value : y_.GridValues(kGridLines)) svg += GridLine(value);
    for (const double value : x_values_) svg += HorizontalLabel(value);
    svg += Text((kLeft + kWidth - kRight) / 2, kHeight - 6, "middle",
                chart_.x_label);
    for (size_t i = 0; i < chart_.curves.size(); ++i) svg += CurveAndName(i);
    return svg + "</svg>\n";
  }

 private:
  double X(double value) const {
    return kLeft + x_.Share(value) * (kWidth - kLeft - kRight);
  }
  double Y(double value) const {
    return kHeight - kBottom - y_.Share(value) * (kHeight - kTop - kBottom);
  }
  static std::string Text(double x, double y, const char* anchor,
                          const std::string& text) {
    return "<text x=\"" + Pixels(x) + "\" y=\"" + Pixels(y) +
           "\" text-anchor=\"" + anchor + "\">" + EscapeHtml(text) +
           "</text>\n";
  }
  std::string GridLine(double value) const {
    const std::string y = Pixels(Y(value));
    return "<line class=\"grid\" x1=\"" + Pixels(kLeft) + "\" x2=\"" +
           Pixels(kWidth - kRight) + "\" y1=\"" + y + "\" y2=\"" + y +
           "\"/>\n" +
           Text(kLeft - 8, Y(value) + 4, "end", Format("%.4g", value));
  }
  std::string HorizontalLabel(double value) const {
    if (!x_.Shows(value)) return "";
    const double share = x_.Share(value);
    const char* anchor = share <= 0 ? "start" : share >= 1 ? "end" : "middle";
    return Text(X(value), kHeight - kBottom + 18, anchor,
                Format("%.6g", value));
  }
  std::string ErrorBar(const Curve& curve, size_t point,
                       const std::string& colour) const {
    if (point >= curve.low.size() || point >= curve.high.size()) return "";
    if (!y_.Shows(curve.low[point]) || !y_.Shows(curve.high[point])) return "";
    const double x = X(XOf(curve, point));
    const std::string low = Pixels(Y(curve.low[point]));
    const std::string high = Pixels(Y(curve.high[point]));
    const std::string left = Pixels(x - kErrorBarEnd);
    const std::string right = Pixels(x + kErrorBarEnd);
    return "<path class=\"curve\" stroke=\"" + colour + "\" d=\"M" + left +
           "," + low + "H" + right + "M" + left + "," + high + "H" + right +
           "M" + Pixels(x) + "," + low + "V" + high + "\"/>\n";
  }
  std::string CurveAndName(size_t index) const {
    const Curve& curve = chart_.curves[index];
    const std::string colour = kColours[index % kColours.size()];
    std::string points;
    std::string dots;
    for (size_t i = 0; i < curve.values.size(); ++i) {
      if (!y_.Shows(curve.values[i]) || !x_.Shows(XOf(curve, i))) continue;
      const std::string x = Pixels(X(XOf(curve, i)));
      const std::string y = Pixels(Y(curve.values[i]));
      points += (points.empty() ? "" : " ") + x + "," + y;
      dots += ErrorBar(curve, i, colour);
      if (curve.dashed) continue;
      dots += "<circle cx=\"" + x + "\" cy=\"" + y + "\" r=\"2\" fill=\"" +
              colour + "\"/>\n";
    }
    const std::string dashes = curve.dashed ? " stroke-dasharray=\"6 4\"" : "";
    return "<polyline class=\"curve\" stroke=\"" + colour + "\"" + dashes +
           " points=\"" + points + "\"/>\n" + dots + "<text x=\"" +
           Pixels(kWidth - kRight) + "\" y=\"" +
           Pixels(kTop + 14 * static_cast<double>(index + 1)) +
           "\" text-anchor=\"end\" fill=\"" + colour + "\">" +
           EscapeHtml(curve.name) + "</text>\n";
  }

  const Chart& chart_;
  ChartAxis x_;
  ChartAxis y_;
  std::set<double> x_values_;  // that get a label
};

std::string Style(const std::string& rules) {
  return "<style>" + rules + "</style>\n";
}

}  // namespace

std::string ChartStyle() { return kDrawingStyle; }

std::string ChartSvg(const Chart& chart) { return Drawing(chart).Svg("", ""); }

std::string ChartDocument(const Chart& chart) {
  return Drawing(chart).Svg(
      " xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\"",
      "<title>" + EscapeHtml(chart.title) + "</title>\n" +
          Style(kDrawingStyle));
}

std::string ChartsPage(const std::string& title,
                       const std::vector<std::string>& lines,
                       const std::vector<Chart>& charts) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n" +
      Style(std::string(kPageStyle) + "svg{display:block}" + kDrawingStyle);
  page += "<title>" + EscapeHtml(title) + "</title></head><body>\n<h1>" +
          EscapeHtml(title) + "</h1>\n";
  for (const std::string& line : lines) {
    page += "<p>" + EscapeHtml(line) + "</p>\n";
  }
  for (const Chart& chart : charts) {
    page += "<h2>" + EscapeHtml(chart.title) + "</h2>\n" + ChartSvg(chart);
  }
  return page + "</body></html>\n";
}

std::string EscapeHtml(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace hvdlite::support

#include "trainers/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace hvdlite::trainers {
namespace {

// In pixels, of an SVG image.
constexpr double kWidth = 640;
constexpr double kHeight = 320;
constexpr double kLeft = 64;
constexpr double kRight = 16;
constexpr double kTop = 16;
constexpr double kBottom = 40;
constexpr int kGridLines = 5;
// Of the curves, in turn; told apart by colour-blind people, too (Okabe and
// Ito, 2008).
constexpr std::array<const char*, 4> kColours = {"#0072b2", "#d55e00",
                                                 "#009e73", "#cc79a7"};

constexpr char kHead[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<style>body{font:14px sans-serif;margin:2em}svg{display:block}"
    "text{font-size:12px}.grid{stroke:#ddd}.curve{fill:none;stroke-width:2}"
    "</style>\n";

std::string Escape(const std::string& text) {
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

std::string Format(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
std::string Pixels(double value) { return Format("%.1f", value); }

// What the vertical axis shows.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
};

Range RangeOf(const Chart& chart) {
  Range range;
  for (const Curve& curve : chart.curves) {
    for (const double value : curve.values) {
      if (!std::isfinite(value)) continue;
      range.low = std::min(range.low, value);
      range.high = std::max(range.high, value);
    }
  }
  if (range.low > range.high) range = {0, 1};
  if (range.low == range.high) {
    range.low -= 0.5;
    range.high += 0.5;
  }
  return range;
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart), range_(RangeOf(chart)) {
    for (const Curve& curve : chart.curves) {
      points_ = std::max(points_, curve.values.size());
    }
  }

  std::string Svg() const {
    std::string svg = "<h2>" + Escape(chart_.title) + "</h2>\n<svg width=\"" +
                      Pixels(kWidth) + "\" height=\"" + Pixels(kHeight) +
                      "\" role=\"img\">\n";
    for (int line = 0; line < kGridLines; ++line) svg += GridLine(line);
    svg += Text(kLeft, kHeight - kBottom + 18, "start", "1");
    if (points_ > 1) {
      svg += Text(kWidth - kRight, kHeight - kBottom + 18, "end",
                  std::to_string(points_));
    }
    svg += Text((kLeft + kWidth - kRight) / 2, kHeight - 6, "middle",
                chart_.x_label);
    for (size_t i = 0; i < chart_.curves.size(); ++i) svg += CurveAndName(i);
    return svg + "</svg>\n";
  }

 private:
  double X(size_t point) const {
    const double share = points_ < 2 ? 0
                                     : static_cast<double>(point) /
                                           static_cast<double>(points_ - 1);
    return kLeft + share * (kWidth - kLeft - kRight);
  }
  double Y(double value) const {
    const double share = (value - range_.low) / (range_.high - range_.low);
    return kHeight - kBottom - share * (kHeight - kTop - kBottom);
  }
  static std::string Text(double x, double y, const char* anchor,
                          const std::string& text) {
    return "<text x=\"" + Pixels(x) + "\" y=\"" + Pixels(y) +
           "\" text-anchor=\"" + anchor + "\">" + Escape(text) + "</text>\n";
  }
  std::string GridLine(int line) const {
    const double value =
        range_.low + (range_.high - range_.low) * line / (kGridLines - 1);
    const std::string y = Pixels(Y(value));
    return "<line class=\"grid\" x1=\"" + Pixels(kLeft) + "\" x2=\"" +
           Pixels(kWidth - kRight) + "\" y1=\"" + y + "\" y2=\"" + y +
           "\"/>\n" +
           Text(kLeft - 8, Y(value) + 4, "end", Format("%.4g", value));
  }
  std::string CurveAndName(size_t index) const {
    const Curve& curve = chart_.curves[index];
    const std::string colour = kColours[index % kColours.size()];
    std::string points;
    std::string dots;
    for (size_t i = 0; i < curve.values.size(); ++i) {
      if (!std::isfinite(curve.values[i])) continue;
      const std::string x = Pixels(X(i));
      const std::string y = Pixels(Y(curve.values[i]));
      points += (points.empty() ? "" : " ") + x + "," + y;
      dots += "<circle cx=\"" + x + "\" cy=\"" + y + "\" r=\"2\" fill=\"" +
              colour + "\"/>\n";
    }
    return "<polyline class=\"curve\" stroke=\"" + colour + "\" points=\"" +
           points + "\"/>\n" + dots + "<text x=\"" + Pixels(kWidth - kRight) +
           "\" y=\"" + Pixels(kTop + 14 * static_cast<double>(index + 1)) +
           "\" text-anchor=\"end\" fill=\"" + colour + "\">" +
           Escape(curve.name) + "</text>\n";
  }

  const Chart& chart_;
  const Range range_;
  size_t points_ = 1;
};

}  // namespace

std::string ChartsPage(const std::string& title,
                       const std::vector<std::string>& lines,
                       const std::vector<Chart>& charts) {
  std::string page = kHead;
  page += "<title>" + Escape(title) + "</title></head><body>\n<h1>" +
          Escape(title) + "</h1>\n";
  for (const std::string& line : lines) page += "<p>" + Escape(line) + "</p>\n";
  for (const Chart& chart : charts) page += Drawing(chart).Svg();
  return page + "</body></html>\n";
}

}  // namespace hvdlite::trainers

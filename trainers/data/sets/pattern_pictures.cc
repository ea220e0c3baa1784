#include "trainers/data/sets/pattern_pictures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "trainers/data/sets/random.h"

namespace hvdlite::trainers {
namespace {

using Colour = std::array<double, 3>;  // red, green, blue, 0 to 255

// Palette and style of a domain.
struct Style {
  double saturation;  // 0: grey, 1: pure colours
  double dark;        // mean of the pattern's colour, and of the background's
  double light;
  double shading;  // how much one side is brighter than the other
  double noise;    // standard deviation
};

constexpr std::array<Style, 4> kStyles = {{
    {.saturation = 0.6, .dark = 70, .light = 190, .shading = 30, .noise = 25},
    {.saturation = 0.9, .dark = 80, .light = 200, .shading = 0, .noise = 2},
    {.saturation = 0.3, .dark = 60, .light = 170, .shading = 50, .noise = 12},
    {.saturation = 0.0, .dark = 20, .light = 245, .shading = 0, .noise = 2},
}};

struct Placement {
  double period;  // pixels
  double shift_x, shift_y;
};

bool IsOdd(double value) { return std::lround(std::floor(value)) % 2 != 0; }

// Whether a pixel has the pattern's colour. No pattern becomes another one when
// it is flipped.
bool IsInk(int label, const Placement& placement, double x, double y) {
  const double u = 2.0 * (x + placement.shift_x) / placement.period;
  const double v = 2.0 * (y + placement.shift_y) / placement.period;
  switch (label) {
    case 0:  // vertical stripes
      return IsOdd(u);
    case 1:  // horizontal stripes
      return IsOdd(v);
    case 2:  // checkerboard
      return IsOdd(u) != IsOdd(v);
    case 3:  // dots
      return std::hypot(std::remainder(u, 2.0), std::remainder(v, 2.0)) < 0.6;
    case 4:  // grid
      return std::abs(std::remainder(u, 2.0)) < 0.3 ||
             std::abs(std::remainder(v, 2.0)) < 0.3;
    case 5:  // diagonals in both directions
      return std::abs(std::remainder(u + v, 2.0)) < 0.3 ||
             std::abs(std::remainder(u - v, 2.0)) < 0.3;
    default:  // a plain surface
      return false;
  }
}

Colour DrawColour(const Style& style, double brightness, KeyedRandom& random) {
  const double hue = 2.0 * std::numbers::pi * random.Uniform();
  Colour colour;
  for (int channel = 0; channel < 3; ++channel) {
    const double phase = 2.0 * std::numbers::pi * channel / 3.0;
    colour[channel] =
        brightness * (1.0 + 0.5 * style.saturation * std::cos(hue - phase));
  }
  return colour;
}

}  // namespace

const std::vector<std::string>& PacsDomains() {
  static const std::vector<std::string> domains = {"art_painting", "cartoon",
                                                   "photo", "sketch"};
  return domains;
}

const std::vector<std::string>& PacsClasses() {
  static const std::vector<std::string> classes = {
      "dog", "elephant", "giraffe", "guitar", "horse", "house", "person"};
  return classes;
}

RgbImage MakePatternPicture(int domain, int label, int64_t side, uint64_t seed,
                            int64_t index) {
  KeyedRandom random{seed, static_cast<uint64_t>(domain),
                     static_cast<uint64_t>(label),
                     static_cast<uint64_t>(index)};
  const Style& style = kStyles[domain];
  const auto size = static_cast<double>(side);
  const double period = size * (0.2 + 0.1 * random.Uniform());
  const Placement placement{.period = period,
                            .shift_x = period * random.Uniform(),
                            .shift_y = period * random.Uniform()};
  Colour ink = DrawColour(style, style.dark, random);
  Colour ground = DrawColour(style, style.light, random);
  if (random.Below(2) == 1) std::swap(ink, ground);
  RgbImage image{.width = side, .height = side};
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      const auto x_pixels = static_cast<double>(x);
      const Colour& colour =
          IsInk(label, placement, x_pixels, static_cast<double>(y)) ? ink
                                                                    : ground;
      const double change = style.shading * (x_pixels / size - 0.5) +
                            style.noise * random.Normal();
      for (const double value : colour) {
        image.pixels.push_back(static_cast<uint8_t>(
            std::clamp(std::lround(value + change), 0L, 255L)));
      }
    }
  }
  return image;
}

}  // namespace hvdlite::trainers

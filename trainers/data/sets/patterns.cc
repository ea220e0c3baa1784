#include "trainers/data/sets/patterns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>
#include <utility>

#include "base/keyed_random.h"

namespace hvdlite::trainers {
namespace {

support::ProgressLine DrawingProgress(support::ProgressStyle style) {
  return support::ProgressLine(
      {.item = "drawing image", .items = "images", .style = style});
}

// A digit is drawn in a box of kWidth x kHeight pixels.
constexpr int kWidth = 10;
constexpr int kHeight = 18;

struct Segment {
  int left, top;  // of the stroke's centre line
  int right, bottom;
};

constexpr std::array<Segment, 7> kSegments = {{
    {0, 0, kWidth, 0},                       // a: top
    {kWidth, 0, kWidth, kHeight / 2},        // b: upper right
    {kWidth, kHeight / 2, kWidth, kHeight},  // c: lower right
    {0, kHeight, kWidth, kHeight},           // d: bottom
    {0, kHeight / 2, 0, kHeight},            // e: lower left
    {0, 0, 0, kHeight / 2},                  // f: upper left
    {0, kHeight / 2, kWidth, kHeight / 2},   // g: middle
}};

// The lit segments for 0 to 9; the first character is a.
constexpr std::array<const char*, kDigitClasses> kLit = {
    "1111110", "0110000", "1101101", "1111001", "0110011",
    "1011011", "1011111", "1110000", "1111111", "1111011"};

struct Stroke {
  int shift_x, shift_y;  // of the box's corner
  int radius;            // strokes are 2 * radius + 1 pixels thick
};

bool Covers(const Segment& segment, const Stroke& stroke, int x, int y) {
  return x >= segment.left + stroke.shift_x - stroke.radius &&
         x <= segment.right + stroke.shift_x + stroke.radius &&
         y >= segment.top + stroke.shift_y - stroke.radius &&
         y <= segment.bottom + stroke.shift_y + stroke.radius;
}

bool IsInk(int label, const Stroke& stroke, int x, int y) {
  for (size_t i = 0; i < kSegments.size(); ++i) {
    if (kLit[label][i] == '1' && Covers(kSegments[i], stroke, x, y))
      return true;
  }
  return false;
}

void AppendDigit(int label, base::KeyedRandom random,
                 std::vector<uint8_t>& pixels) {
  constexpr uint64_t kShifts = 5;  // -2 to 2 pixels from the centre
  constexpr int kFirstShift = -2;
  const auto shift = [&](int64_t size) {
    return static_cast<int>((kDigitSide - size) / 2) + kFirstShift +
           static_cast<int>(random.Below(kShifts));
  };
  const int shift_x = shift(kWidth);
  const int shift_y = shift(kHeight);
  const Stroke stroke{.shift_x = shift_x,
                      .shift_y = shift_y,
                      .radius = 1 + static_cast<int>(random.Below(2))};
  const double brightness = 130.0 + 120.0 * random.Uniform();
  constexpr double kNoise = 24.0;
  for (int y = 0; y < kDigitSide; ++y) {
    for (int x = 0; x < kDigitSide; ++x) {
      const double ink = IsInk(label, stroke, x, y) ? brightness : 0.0;
      pixels.push_back(static_cast<uint8_t>(
          std::clamp(std::lround(ink + kNoise * random.Normal()), 0L, 255L)));
    }
  }
}

}  // namespace

DigitSet MakePatternDigits(int64_t count, uint64_t seed,
                           support::ProgressStyle style) {
  support::ProgressLine line = DrawingProgress(style);
  DigitSet digits;
  digits.labels.reserve(count);
  digits.pixels.reserve(count * kDigitBytes);
  for (int64_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(i % kDigitClasses);
    digits.labels.push_back(static_cast<uint8_t>(label));
    AppendDigit(label, base::KeyedRandom{seed, static_cast<uint64_t>(i)},
                digits.pixels);
    line.Show(i + 1, count);
  }
  return digits;
}

namespace {

// Weights of red, green and blue in a class's stripes: colours around the
// circle, so similar for neighbours that the direction of the stripes is needed
// too.
double Tint(int label, int channel) {
  const double hue = 2.0 * std::numbers::pi * label / kCifar10Classes;
  const double phase = 2.0 * std::numbers::pi * channel / kImageChannels;
  return 0.5 + 0.5 * std::cos(hue - phase);
}

void AppendImage(int label, base::KeyedRandom random,
                 std::vector<uint8_t>& pixels) {
  const double angle = std::numbers::pi * label / kCifar10Classes;
  const double period = 6.0 + 4.0 * random.Uniform();
  const double phase = 2.0 * std::numbers::pi * random.Uniform();
  const double contrast = 60.0 + 60.0 * random.Uniform();
  constexpr double kNoise = 24.0;
  for (int channel = 0; channel < kImageChannels; ++channel) {
    for (int y = 0; y < kImageSide; ++y) {
      for (int x = 0; x < kImageSide; ++x) {
        const double along = x * std::cos(angle) + y * std::sin(angle);
        const double stripe =
            std::sin(2.0 * std::numbers::pi * along / period + phase);
        const double value = 110.0 + contrast * Tint(label, channel) * stripe +
                             kNoise * random.Normal();
        pixels.push_back(
            static_cast<uint8_t>(std::clamp(std::lround(value), 0L, 255L)));
      }
    }
  }
}

}  // namespace

ImageSet MakePatternImages(int64_t count, uint64_t seed,
                           support::ProgressStyle style) {
  support::ProgressLine line = DrawingProgress(style);
  ImageSet images;
  images.labels.reserve(count);
  images.pixels.reserve(count * kImageBytes);
  for (int64_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(i % kCifar10Classes);
    images.labels.push_back(static_cast<uint8_t>(label));
    AppendImage(label, base::KeyedRandom{seed, static_cast<uint64_t>(i)},
                images.pixels);
    line.Show(i + 1, count);
  }
  return images;
}

namespace {

using Colour = std::array<double, 3>;  // red, green, blue, 0 to 255

// A domain's palette and style.
struct Style {
  double saturation;  // 0: grey, 1: pure colours
  double dark;        // mean brightness of pattern and background
  double light;
  double shading;  // how much brighter one side is than the other
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

// True if a pixel has the pattern's colour. A flipped pattern is never another
// pattern.
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

Colour DrawColour(const Style& style, double brightness,
                  base::KeyedRandom& random) {
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
  base::KeyedRandom random{seed, static_cast<uint64_t>(domain),
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

namespace {

enum SegmentKind { kHelix, kStrand, kCoil };
constexpr int kSegmentKinds = 3;

constexpr std::array<std::string_view, kSegmentKinds> kFavoured = {
    "EMALKQR",  // helix
    "VIYFWTC",  // strand
    "GNPSDH",   // coil
};
constexpr std::array<int, kSegmentKinds> kShortestSegment = {6, 4, 4};
constexpr uint64_t kSegmentLengths = 6;  // from the minimum on
constexpr double kFavouredShare = 0.8;
constexpr int64_t kKnownResidues = kResidueKinds - 1;  // all but X

uint8_t Index(std::string_view letters, char letter) {
  return static_cast<uint8_t>(letters.find(letter));
}

SegmentKind FavouredBy(char residue) {
  for (const SegmentKind kind : {kHelix, kStrand}) {
    if (kFavoured[kind].find(residue) != std::string_view::npos) return kind;
  }
  return kCoil;
}

char DrawResidue(SegmentKind kind, base::KeyedRandom& random) {
  const std::string_view from = random.Uniform() < kFavouredShare
                                    ? kFavoured[kind]
                                    : kResidueLetters.substr(0, kKnownResidues);
  return from[random.Below(from.size())];
}

std::string DrawSequence(int64_t length, base::KeyedRandom& random) {
  std::string sequence;
  auto kind = static_cast<SegmentKind>(random.Below(kSegmentKinds));
  while (static_cast<int64_t>(sequence.size()) < length) {
    const uint64_t segment =
        kShortestSegment[kind] + random.Below(kSegmentLengths);
    for (uint64_t i = 0; i < segment; ++i)
      sequence += DrawResidue(kind, random);
    // One of the other two kinds.
    kind =
        static_cast<SegmentKind>((kind + 1 + random.Below(2)) % kSegmentKinds);
  }
  sequence.resize(length);
  return sequence;
}

// The kind that most residues around position `at` favour.
SegmentKind KindAt(std::string_view sequence, size_t at) {
  constexpr size_t kReach = 2;
  const size_t first = at < kReach ? 0 : at - kReach;
  std::array<int, kSegmentKinds> doubled_votes = {};
  for (const char residue : sequence.substr(first, at + kReach + 1 - first)) {
    doubled_votes[FavouredBy(residue)] += 2;
  }
  doubled_votes[FavouredBy(sequence[at])] += 1;  // breaks ties
  return static_cast<SegmentKind>(
      std::max_element(doubled_votes.begin(), doubled_votes.end()) -
      doubled_votes.begin());
}

char StructureAt(std::string_view sequence, size_t at) {
  switch (KindAt(sequence, at)) {
    case kHelix:
      return 'H';
    case kStrand:
      return 'E';
    case kCoil:
      break;
  }
  const char residue = sequence[at];
  if (residue == 'G' || residue == 'N') return 'T';
  if (residue == 'S' || residue == 'D') return 'S';
  return 'L';
}

}  // namespace

ProteinSet MakePatternProteins(const PatternProteinOptions& options) {
  ProteinSet proteins(options.count);
  for (int64_t i = 0; i < options.count; ++i) {
    base::KeyedRandom random{options.seed, static_cast<uint64_t>(i)};
    const auto lengths =
        static_cast<uint64_t>(options.max_length - options.min_length + 1);
    const std::string sequence = DrawSequence(
        options.min_length + static_cast<int64_t>(random.Below(lengths)),
        random);
    for (size_t at = 0; at < sequence.size(); ++at) {
      proteins[i].residues.push_back(Index(kResidueLetters, sequence[at]));
      proteins[i].structures.push_back(
          Index(kStructureLetters, StructureAt(sequence, at)));
    }
  }
  return proteins;
}

}  // namespace hvdlite::trainers

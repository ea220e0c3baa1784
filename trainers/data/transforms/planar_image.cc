#include "trainers/data/transforms/planar_image.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hvdlite::trainers {
namespace {

// The weights of consecutive input pixels for one output pixel. They add up to
// 1.
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;
};

// Resizing `in` pixels of a row or column gives `out` pixels. Returns the Taps
// of `count` of these, from number `begin` on.
std::vector<Taps> TriangleFilter(int64_t in, int64_t out, int64_t begin,
                                 int64_t count) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double radius = std::max(scale, 1.0);
  std::vector<Taps> filter(count);
  for (int64_t i = 0; i < count; ++i) {
    const double centre = (static_cast<double>(begin + i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(std::lround(centre - radius), 0);
    const int64_t last = std::min<int64_t>(std::lround(centre + radius), in);
    double sum = 0;
    std::vector<double> weights;
    for (int64_t j = first; j < last; ++j) {
      const double distance =
          std::abs(static_cast<double>(j) + 0.5 - centre) / radius;
      weights.push_back(std::max(1.0 - distance, 0.0));
      sum += weights.back();
    }
    filter[i].first = first;
    for (const double weight : weights) {
      filter[i].weights.push_back(static_cast<float>(weight / sum));
    }
  }
  return filter;
}

// Resizes the rows of the crop to the width of the filter.
PlanarImage ResizeRows(const RgbImage& image, const CropBox& crop,
                       const std::vector<Taps>& filter) {
  const auto width = static_cast<int64_t>(filter.size());
  PlanarImage output(width, crop.height);
  for (int64_t y = 0; y < crop.height; ++y) {
    const uint8_t* row =
        &image.pixels[3 * ((crop.top + y) * image.width + crop.left)];
    for (int64_t x = 0; x < width; ++x) {
      float sums[3] = {};
      const uint8_t* pixel = row + 3 * filter[x].first;
      for (const float weight : filter[x].weights) {
        for (float& sum : sums) sum += weight * static_cast<float>(*pixel++);
      }
      for (int channel = 0; channel < 3; ++channel) {
        output.plane(channel)[y * width + x] = sums[channel] / 255.0F;
      }
    }
  }
  return output;
}

PlanarImage ResizeColumns(const PlanarImage& image,
                          const std::vector<Taps>& filter) {
  const auto height = static_cast<int64_t>(filter.size());
  PlanarImage output(image.width, height);
  for (int channel = 0; channel < 3; ++channel) {
    for (int64_t y = 0; y < height; ++y) {
      float* row = output.plane(channel) + y * image.width;
      const float* from = image.plane(channel) + filter[y].first * image.width;
      for (const float weight : filter[y].weights) {
        for (int64_t x = 0; x < image.width; ++x) row[x] += weight * from[x];
        from += image.width;
      }
    }
  }
  return output;
}

// The filter for the `side` pixels in the centre. If the remainder is odd, the
// part before them has an even size, as torchvision rounds.
std::vector<Taps> FilterOfMiddle(int64_t in, int64_t out, int64_t side) {
  const int64_t begin = std::lrint(static_cast<double>(out - side) / 2);
  return TriangleFilter(in, out, begin, side);
}

}  // namespace

PlanarImage CropAndResize(const RgbImage& image, const CropBox& crop,
                          int64_t width, int64_t height) {
  return ResizeColumns(
      ResizeRows(image, crop, TriangleFilter(crop.width, width, 0, width)),
      TriangleFilter(crop.height, height, 0, height));
}

PlanarImage ResizeAndTakeMiddle(const RgbImage& image, int64_t shorter,
                                int64_t side) {
  const auto filter = [&](int64_t from) {
    return FilterOfMiddle(
        from, shorter * from / std::min(image.width, image.height), side);
  };
  std::vector<Taps> rows = filter(image.height);
  const int64_t top = rows.front().first;  // the first row that is needed
  for (Taps& taps : rows) taps.first -= top;
  const int64_t height =
      rows.back().first + static_cast<int64_t>(rows.back().weights.size());
  return ResizeColumns(
      ResizeRows(image, {.top = top, .width = image.width, .height = height},
                 filter(image.width)),
      rows);
}

namespace {

float Clamp(float value) { return std::clamp(value, 0.0F, 1.0F); }

float Blend(float value, float base, float factor) {
  return Clamp(factor * value + (1.0F - factor) * base);
}

float Luminance(const PlanarImage& image, int64_t pixel) {
  return 0.2989F * image.plane(0)[pixel] + 0.587F * image.plane(1)[pixel] +
         0.114F * image.plane(2)[pixel];
}

// How much of the colour with this hue is missing in a channel. HSV to RGB is
// value * (1 - saturation * Missing(hue + offset)); the offsets of red, green
// and blue are 0, 4 and 2 sixths.
float Missing(float hue, float offset) {
  const float sixth = std::fmod(hue * 6.0F + offset, 6.0F);
  return 1.0F - Clamp(std::abs(sixth - 3.0F) - 1.0F);
}

// Returns the hue in [0, 1) of a pixel that is not grey.
float Hue(float red, float green, float blue, float value, float chroma) {
  float sixth = 0;
  if (value == red) {
    sixth = (green - blue) / chroma;
  } else if (value == green) {
    sixth = 2.0F + (blue - red) / chroma;
  } else {
    sixth = 4.0F + (red - green) / chroma;
  }
  return std::fmod(sixth / 6.0F + 1.0F, 1.0F);
}

}  // namespace

void AdjustBrightness(PlanarImage& image, float factor) {
  for (float& value : image.values) value = Clamp(value * factor);
}

void AdjustContrast(PlanarImage& image, float factor) {
  double sum = 0;
  for (int64_t i = 0; i < image.plane_size(); ++i) sum += Luminance(image, i);
  const auto mean =
      static_cast<float>(sum / static_cast<double>(image.plane_size()));
  for (float& value : image.values) value = Blend(value, mean, factor);
}

void AdjustSaturation(PlanarImage& image, float factor) {
  for (int64_t i = 0; i < image.plane_size(); ++i) {
    const float luminance = Luminance(image, i);
    for (int channel = 0; channel < 3; ++channel) {
      float& value = image.plane(channel)[i];
      value = Blend(value, luminance, factor);
    }
  }
}

void AdjustHue(PlanarImage& image, float shift) {
  constexpr float kOffsets[3] = {0.0F, 4.0F, 2.0F};
  for (int64_t i = 0; i < image.plane_size(); ++i) {
    const float red = image.plane(0)[i];
    const float green = image.plane(1)[i];
    const float blue = image.plane(2)[i];
    const float value = std::max({red, green, blue});
    const float chroma = value - std::min({red, green, blue});
    if (chroma == 0.0F) continue;
    const float hue = Hue(red, green, blue, value, chroma) + shift + 1.0F;
    for (int channel = 0; channel < 3; ++channel) {
      image.plane(channel)[i] =
          value - chroma * Missing(hue, kOffsets[channel]);
    }
  }
}

void ConvertToGrey(PlanarImage& image) {
  for (int64_t i = 0; i < image.plane_size(); ++i) {
    const float luminance = Luminance(image, i);
    for (int channel = 0; channel < 3; ++channel) {
      image.plane(channel)[i] = luminance;
    }
  }
}

}  // namespace hvdlite::trainers

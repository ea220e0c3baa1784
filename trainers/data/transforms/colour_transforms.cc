#include "trainers/data/transforms/colour_transforms.h"

#include <algorithm>
#include <cmath>

namespace hvdlite::trainers {
namespace {

float Clamp(float value) { return std::clamp(value, 0.0F, 1.0F); }

float Blend(float value, float base, float factor) {
  return Clamp(factor * value + (1.0F - factor) * base);
}

float Luminance(const PlanarImage& image, int64_t pixel) {
  return 0.2989F * image.plane(0)[pixel] + 0.587F * image.plane(1)[pixel] +
         0.114F * image.plane(2)[pixel];
}

// How much of the colour with this hue is missing in a channel: HSV to RGB is
// value * (1 - saturation * Missing(hue + offset)), with the offsets 0, 4 and 2
// sixths for red, green and blue.
float Missing(float hue, float offset) {
  const float sixth = std::fmod(hue * 6.0F + offset, 6.0F);
  return 1.0F - Clamp(std::abs(sixth - 3.0F) - 1.0F);
}

// In [0, 1), of a pixel that is not grey.
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

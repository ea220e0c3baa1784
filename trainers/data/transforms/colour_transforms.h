// Changes of colour, with the definitions of torchvision's
// transforms.functional, on values from 0 to 1, to which results are clamped.
#pragma once

#include "trainers/data/transforms/planar_image.h"

namespace hvdlite::trainers {

// Multiplies all values.
void AdjustBrightness(PlanarImage& image, float factor);

// Moves all values away from the mean luminance (factor above 1) or towards it.
void AdjustContrast(PlanarImage& image, float factor);

// Moves each pixel away from its luminance (factor above 1) or towards it.
void AdjustSaturation(PlanarImage& image, float factor);

// Turns the hue by `shift` of the colour circle, -0.5 to 0.5; 1/3 takes red to
// green. Saturation and value, in HSV, stay.
void AdjustHue(PlanarImage& image, float shift);

// Sets red, green and blue to the luminance, 0.2989 R + 0.587 G + 0.114 B.
void ConvertToGrey(PlanarImage& image);

}  // namespace hvdlite::trainers

// Images that a small network can learn to tell apart in a few dozen steps.
#pragma once

#include <cstdint>

#include "trainers/data/formats/image_set.h"

namespace hvdlite::trainers {

// `count` images of ten classes, in turn. A class is a colour and a direction
// of stripes; phase, width and contrast of the stripes and the noise are
// random. Depends on its arguments alone; images of different seeds differ.
ImageSet MakePatternImages(int64_t count, uint64_t seed);

}  // namespace hvdlite::trainers

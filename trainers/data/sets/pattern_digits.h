// Images of digits that a small network can learn in a few dozen steps.
#pragma once

#include <cstdint>

#include "trainers/data/formats/digit_set.h"

namespace hvdlite::trainers {

// `count` images of the ten digits, in turn, as a seven-segment display shows
// them; position, thickness and brightness of the segments and the noise are
// random. Depends on its arguments alone; images of different seeds differ.
DigitSet MakePatternDigits(int64_t count, uint64_t seed);

}  // namespace hvdlite::trainers

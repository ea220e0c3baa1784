// Pictures of the classes and in the styles of PACS, as a small network can
// tell them apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainers/data/formats/rgb_image.h"

namespace hvdlite::trainers {

// The four domains and seven classes of PACS, sorted.
const std::vector<std::string>& PacsDomains();
const std::vector<std::string>& PacsClasses();

// A picture of side x side pixels. The class (an index of PacsClasses()) is a
// pattern of two colours, such as stripes or dots, whose period, position and
// polarity are random; the domain (an index of PacsDomains()) is the palette
// and the style, so that classes learnt in some domains hold in the others.
// Depends on its arguments alone.
RgbImage MakePatternPicture(int domain, int label, int64_t side, uint64_t seed,
                            int64_t index);

}  // namespace hvdlite::trainers

#include "trainers/models/positions.h"

#include <cmath>

namespace hvdlite::trainers {

torch::Tensor SinusoidTable(int64_t max_length, int64_t width) {
  torch::Tensor table = torch::zeros({max_length + 1, width}, torch::kFloat);
  auto values = table.accessor<float, 2>();
  for (int64_t column = 0; column < width; ++column) {
    const int64_t even = column - column % 2;
    const double wavelength = std::pow(
        10000.0, static_cast<double>(even) / static_cast<double>(width));
    for (int64_t position = 1; position <= max_length; ++position) {
      const double angle = static_cast<double>(position) / wavelength;
      values[position][column] = static_cast<float>(
          column == even ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

}  // namespace hvdlite::trainers

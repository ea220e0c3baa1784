#include "trainers/divergence.h"

#include <cmath>

namespace hvdlite::trainers {

void RequireFinite(double loss, const std::string& what) {
  if (std::isfinite(loss)) return;
  throw DivergenceError("the " + what + " is not finite (" +
                        std::to_string(loss) +
                        "): the training diverged. Remedy: go on from a "
                        "checkpoint, or anew, with a smaller learning rate or "
                        "a longer warm-up, and look for values in the data "
                        "that are not finite");
}

}  // namespace hvdlite::trainers

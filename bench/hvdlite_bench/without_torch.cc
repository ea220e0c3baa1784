// Replaces the modes that need LibTorch in a build without it.
#include "bench/hvdlite_bench/mode.h"

namespace hvdlite::tools {

std::vector<Mode> TorchModes() { return {}; }

}  // namespace hvdlite::tools

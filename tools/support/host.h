// What a benchmark ran on.
#pragma once

#include <string>

namespace hvdlite::trainers {

struct Host {
  std::string name;
  std::string cpu;  // its model, or the architecture where none is told
};

// Of this machine.
Host ThisHost();

}  // namespace hvdlite::trainers

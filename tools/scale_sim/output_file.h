// Writing a file that a flag names.
#pragma once

#include <fstream>
#include <iostream>
#include <string>

namespace hvdlite::scale_sim {

// Writes `text` to `path`, unless that is empty. Returns the process's exit
// code: 1, with a message, when it cannot be written.
inline int WriteOutput(const std::string& path, const std::string& text) {
  if (path.empty()) return 0;
  std::ofstream file(path);
  file << text;
  file.close();
  if (file) return 0;
  std::cerr << "scale_sim: cannot write " << path << "\n";
  return 1;
}

}  // namespace hvdlite::scale_sim

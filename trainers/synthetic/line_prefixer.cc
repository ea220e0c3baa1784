#include "trainers/synthetic/line_prefixer.h"

namespace hvdlite::trainers {

std::string LinePrefixer::Add(std::string_view bytes) {
  std::string lines;
  for (const char c : bytes) {
    line_ += c;
    if (c != '\n') continue;
    lines += prefix_ + line_;
    line_.clear();
  }
  return lines;
}

std::string LinePrefixer::Finish() {
  return line_.empty() ? std::string() : Add("\n");
}

}  // namespace hvdlite::trainers

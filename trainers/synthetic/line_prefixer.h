// Puts a prefix before each line of a stream.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace hvdlite::trainers {

class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  // The lines that `bytes` complete, with the prefix. What follows the last
  // newline is kept for later.
  std::string Add(std::string_view bytes);

  // What is kept, as a line; empty if nothing is.
  std::string Finish();

 private:
  std::string prefix_;
  std::string line_;
};

}  // namespace hvdlite::trainers

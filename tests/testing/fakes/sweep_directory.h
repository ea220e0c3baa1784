// A directory for the results of one test.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace hvdlite::scaling_sweep {

// The constructor makes it; the destructor removes it with its content.
class SweepDirectory {
 public:
  SweepDirectory() {
    path_ = (std::filesystem::temp_directory_path() / "hvdlite_sweep.XXXXXX")
                .string();
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~SweepDirectory() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  SweepDirectory(const SweepDirectory&) = delete;
  SweepDirectory& operator=(const SweepDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const {
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

}  // namespace hvdlite::scaling_sweep

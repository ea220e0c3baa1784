// A directory for the results of one test.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace hvdlite::scaling_sweep {

// The constructor makes it; the destructor removes it with its content.
class SweepFolder {
 public:
  SweepFolder() {
    path_ = (std::filesystem::temp_directory_path() / "hvdlite_sweep.XXXXXX")
                .string();
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~SweepFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  SweepFolder(const SweepFolder&) = delete;
  SweepFolder& operator=(const SweepFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const {
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

}  // namespace hvdlite::scaling_sweep

// A directory for the files of one test.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace hvdlite::trainers {

// The constructor makes it; the destructor removes it with its content. It is
// in memory if /dev/shm has room: writing to a disk takes longer than most
// tests, and data sets and checkpoints are synced.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (Parent() / "test_directory.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("cannot make a directory like " + name);
    }
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }

 private:
  static std::filesystem::path Parent() {
    constexpr uintmax_t kEnough = uintmax_t{4} << 30;
    std::error_code error;
    const std::filesystem::space_info memory =
        std::filesystem::space("/dev/shm", error);
    return !error && memory.available > kEnough
               ? "/dev/shm"
               : std::filesystem::temp_directory_path();
  }

  std::filesystem::path path_;
};

}  // namespace hvdlite::trainers

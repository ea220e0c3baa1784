// A directory that replaces the root of a machine's file system.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/machine.h"

namespace hvdlite::testing {

class MachineFiles {
 public:
  MachineFiles() : root_(::testing::TempDir() + "/hvdlite_machine_XXXXXX") {
    if (mkdtemp(root_.data()) == nullptr) std::abort();
  }
  ~MachineFiles() { std::filesystem::remove_all(root_); }
  MachineFiles(const MachineFiles&) = delete;
  MachineFiles& operator=(const MachineFiles&) = delete;

  const std::string& root() const { return root_; }
  support::SystemFiles files() const { return support::SystemFiles(root_); }

  // `path` begins with a slash.
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }

  // Adds a process in the format of /proc/ID/stat.
  void AddProcess(int id, const std::string& name, int group) {
    const std::string number = std::to_string(id);
    Write("/proc/" + number + "/stat",
          number + " (" + name + ") S 1 " + std::to_string(group) +
              " 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 1 1 1 1 1 1 1 1 0 0 0 0 0 "
              "0 0 17 0 0 0 0 0 0");
  }

  void SetAvailable(size_t bytes) {
    Write("/proc/meminfo", "MemTotal:       987654321 kB\nMemAvailable:   " +
                               std::to_string(bytes >> 10) + " kB\n");
  }

 private:
  std::string root_;
};

}  // namespace hvdlite::testing

// A folder that stands for the root of a machine.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/machine.h"

namespace hvdlite::doctor {

class FileTree {
 public:
  FileTree()
      : root_(std::filesystem::path(::testing::TempDir()) /
              ("doctor_tree_" + std::string(::testing::UnitTest::GetInstance()
                                                ->current_test_info()
                                                ->name()))) {
    std::filesystem::remove_all(root_);
  }
  ~FileTree() { std::filesystem::remove_all(root_); }
  FileTree(const FileTree&) = delete;
  FileTree& operator=(const FileTree&) = delete;

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_.string() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }

  support::SystemFiles files() const { return support::SystemFiles(root_); }

 private:
  std::filesystem::path root_;
};

}  // namespace hvdlite::doctor

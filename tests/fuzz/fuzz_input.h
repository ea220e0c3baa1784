// Shared by fuzz targets: values from the bytes of a fuzzer, and files that
// contain them.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace hvdlite::fuzz {

// Ends the process, like a crash, if a condition of a target is false.
#define FUZZ_CHECK(condition)                                           \
  do {                                                                  \
    if (!(condition)) {                                                 \
      std::fprintf(stderr, "%s:%d: is false: %s\n", __FILE__, __LINE__, \
                   #condition);                                         \
      std::abort();                                                     \
    }                                                                   \
  } while (false)

// Takes values from the front of the bytes. After the last byte, values are 0
// and "".
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }

  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }

  // A value from 0 to `end` - 1; `end` is at most 256.
  int Below(int end) { return Byte() % end; }
  bool Bool() { return (Byte() & 1) != 0; }

  // A number that is mostly small, and often at a limit of some type.
  uint64_t Number() {
    constexpr uint64_t kLimits[] = {0x7f,
                                    0xff,
                                    0x7fff,
                                    0xffff,
                                    0x7fffffff,
                                    0x80000000,
                                    0xffffffff,
                                    0x100000000,
                                    std::numeric_limits<int64_t>::max(),
                                    uint64_t{1} << 63,
                                    std::numeric_limits<uint64_t>::max()};
    const uint8_t first = Byte();
    if (first < 200) return first % 20;
    if (first < 230) return kLimits[Byte() % std::size(kLimits)];
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | Byte();
    return value;
  }

  // The next bytes, at most `size`.
  std::string_view Bytes(size_t size) {
    const std::string_view taken =
        rest_.substr(0, std::min(size, rest_.size()));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  // The bytes up to `end`, which is also taken.
  std::string_view Until(char end) {
    const size_t found = rest_.find(end);
    const std::string_view taken = rest_.substr(0, found);
    rest_.remove_prefix(found == rest_.npos ? rest_.size() : found + 1);
    return taken;
  }

  std::string_view Rest() { return Bytes(rest_.size()); }

 private:
  std::string_view rest_;
};

// A directory of this process for files, removed at its end.
class FuzzDirectory {
 public:
  FuzzDirectory() {
    std::error_code error;
    // In memory if possible. The name must not look like hvdlite's own memory.
    const char* const memory = "/dev/shm";
    const auto parent = access(memory, W_OK) == 0
                            ? std::filesystem::path(memory)
                            : std::filesystem::temp_directory_path();
    std::string name = (parent / "fuzz.XXXXXX").string();
    FUZZ_CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~FuzzDirectory() { std::filesystem::remove_all(path_); }
  FuzzDirectory(const FuzzDirectory&) = delete;
  FuzzDirectory& operator=(const FuzzDirectory&) = delete;

  // Writes a file that contains only `bytes` and returns its path.
  std::string Write(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path path = path_ / name;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    FUZZ_CHECK(file.good());
    return path.string();
  }
  std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }
  void Clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      std::filesystem::remove_all(entry.path());
    }
  }

 private:
  std::filesystem::path path_;
};

}  // namespace hvdlite::fuzz

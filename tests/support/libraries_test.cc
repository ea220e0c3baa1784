#include "support/libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <ostream>

namespace hvdlite::support {

inline bool operator==(const Library& a, const Library& b) {
  return a.name == b.name && a.path == b.path;
}

inline void PrintTo(const Library& library, std::ostream* out) {
  *out << library.name << " => " << library.path;
}

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LibrariesTest, LinkerListIsParsed) {
  EXPECT_THAT(
      ParseLinkerList("\tlinux-vdso.so.1 (0x00007ffd)\n"
                      "\t/opt/libjemalloc.so.2 (0x00007f)\n"
                      "\tlibm.so.6 => /lib/libm.so.6 (0x00007f)\n"
                      "\tlibgone.so.1 => not found\n"
                      "\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n"
                      "ERROR: ld.so: object 'x' cannot be preloaded\n"),
      ElementsAre(
          Library{"libjemalloc.so.2", "/opt/libjemalloc.so.2"},
          Library{"libm.so.6", "/lib/libm.so.6"}, Library{"libgone.so.1", ""},
          Library{"ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2"}));
}

TEST(LibrariesTest, ThisProcessHasTheCLibrary) {
  bool found = false;
  for (const Library& library : LoadedLibraries()) {
    found |= library.name.starts_with("libc.so") && library.path[0] == '/';
  }
  EXPECT_TRUE(found);
}

TEST(LibrariesTest, ScriptIsRefused) {
  const std::string script = ::testing::TempDir() + "/doctor_script";
  std::ofstream(script) << "#!/bin/sh\n";
  const auto libraries = LibrariesOf(script);
  EXPECT_EQ(libraries.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(libraries.status().message(),
              HasSubstr("not a compiled program"));
  std::remove(script.c_str());
}

TEST(LibrariesTest, MissingProgramIsNotFound) {
  EXPECT_EQ(LibrariesOf("/nonexistent/prog").status().code(),
            absl::StatusCode::kNotFound);
}

// Copies `file`, with `name` instead of its C library.
void CopyWithOtherLibrary(const std::string& file, const std::string& copy,
                          const std::string& name) {
  std::ifstream in(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in),
                    std::istreambuf_iterator<char>()};
  const std::string c_library = "libc.so.6";
  ASSERT_EQ(name.size(), c_library.size());
  for (size_t at = bytes.find(c_library); at != std::string::npos;
       at = bytes.find(c_library, at)) {
    bytes.replace(at, name.size(), name);
  }
  std::ofstream(copy, std::ios::binary) << bytes;
}

TEST(LibrariesTest, MissingLibrariesHaveNoPath) {
  const std::string copy = ::testing::TempDir() + "/doctor_missing";
  CopyWithOtherLibrary("/bin/true", copy, "libq.so.6");
  const auto libraries = LibrariesOf(copy);
  std::remove(copy.c_str());
  ASSERT_TRUE(libraries.ok()) << libraries.status();
  EXPECT_THAT(*libraries, ::testing::Contains(Library{"libq.so.6", ""}));
}

TEST(LibrariesTest, ListsTheLibrariesOfAProgram) {
  const auto libraries = LibrariesOf("/bin/true");
  ASSERT_TRUE(libraries.ok()) << libraries.status();
  ASSERT_FALSE(libraries->empty());
  for (const Library& library : *libraries) {
    EXPECT_THAT(library.path, ::testing::StartsWith("/")) << library.name;
  }
}

TEST(LibrariesTest, LinkerOfAProgramIsRead) {
  EXPECT_THAT(InterpreterOf("/proc/self/exe"), HasSubstr("/ld"));
  EXPECT_EQ(InterpreterOf("/proc/self/maps"), "");
}

TEST(LibrariesTest, OpenBlasMayBeBehindLibblas) {
  EXPECT_EQ(OpenBlasCandidate({{"libgomp.so.1", "/lib/libgomp.so.1"},
                               {"libblas.so.3", "/lib/libblas.so.3"}}),
            "/lib/libblas.so.3");
  EXPECT_EQ(OpenBlasCandidate({{"libopenblas.so.0", ""}}), "libblas.so.3");
}

TEST(LibrariesTest, LargePageLibraryCountsOnlyIfFound) {
  EXPECT_TRUE(HasLargePageLibrary({{"libjemalloc.so.2", "/l/libjemalloc.so.2"},
                                   {"libmpg.so.1", "/l/libmpg.so.1"}}));
  EXPECT_FALSE(HasLargePageLibrary({{"libmpg.so.1", ""}}));
  EXPECT_FALSE(HasLargePageLibrary({{"libm.so.6", "/l/libm.so.6"}}));
}

}  // namespace
}  // namespace hvdlite::support

#include "base/checkpoint_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "tests/testing/fakes/temporary_directory.h"

namespace {

// The C library functions that this program replaces are counted here. Call
// number `trouble_at` fails or ends the process.
struct DiskCalls {
  enum Trouble { kNone, kFails, kEnds, kWritesHalfAndEnds };
  Trouble trouble = kNone;
  int trouble_at = 0;
  bool has_hard_links = true;
  int made = 0;
  std::string names = "";  // one letter per call
};
DiskCalls disk;

// Whether this call must fail.
bool Fails(char name, int descriptor = -1, const void* data = nullptr,
           size_t size = 0) {
  disk.names += name;
  const int number = disk.made++;
  if (disk.trouble == DiskCalls::kNone || number != disk.trouble_at) {
    return false;
  }
  if (disk.trouble == DiskCalls::kFails) return true;
  if (disk.trouble == DiskCalls::kWritesHalfAndEnds && data != nullptr) {
    syscall(SYS_write, descriptor, data, size / 2);
  }
  _exit(3);
}

int Error(int number) {
  errno = number;
  return -1;
}

}  // namespace

extern "C" {
ssize_t write(int descriptor, const void* data, size_t size) {
  if (descriptor > STDERR_FILENO && Fails('w', descriptor, data, size)) {
    return Error(ENOSPC);
  }
  return syscall(SYS_write, descriptor, data, size);
}
int fsync(int descriptor) {
  if (Fails('s')) return Error(EIO);
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}
int link(const char* from, const char* to) noexcept {
  if (Fails('l') || !disk.has_hard_links) return Error(EPERM);
  return static_cast<int>(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int rename(const char* from, const char* to) noexcept {
  if (Fails('r')) return Error(EIO);
  return static_cast<int>(
      syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
}

namespace hvdlite::base {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::string FileBytes(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Replaced, too: some file systems flush a file that is overwritten.
void WriteBytes(const std::string& file, const std::string& bytes) {
  std::filesystem::remove(file);
  std::ofstream(file, std::ios::binary) << bytes;
}

std::string Repeated(const std::string& text) {
  std::string content;
  for (int i = 0; i < 20; ++i) content += text;
  return content;
}

class CheckpointFileTest : public ::testing::Test {
 protected:
  CheckpointFileTest() { disk = {}; }
  ~CheckpointFileTest() override { disk = {}; }

  absl::Status Write(const std::string& content) {
    return WriteCheckpointFile(path_, content, /*keep_previous=*/true);
  }

  // `trouble` happens at this call.
  absl::Status WriteWith(DiskCalls::Trouble trouble, int call,
                         const std::string& content) {
    disk.made = 0;
    disk.names = "";
    disk.trouble = trouble;
    disk.trouble_at = call;
    return Write(content);
  }

  // What a program reads that falls back to the previous generation.
  std::string Newest() {
    for (const std::string& file : {path_, PreviousGeneration(path_)}) {
      const auto content = ReadCheckpointFile(file);
      if (content.ok()) return *content;
    }
    return "none";
  }
  std::string At(const std::string& file) {
    const auto content = ReadCheckpointFile(file);
    return content.ok() ? *content : std::string(content.status().message());
  }

  // The names in the directory.
  std::set<std::string> Files() {
    std::set<std::string> names;
    for (const auto& file :
         std::filesystem::directory_iterator(directory_.path())) {
      names.insert(file.path().filename());
    }
    return names;
  }

  // Runs in a child process; returns its exit code, or its signal as -N.
  template <typename Action>
  int InChild(Action action) {
    const pid_t child = fork();
    if (child == 0) {
      const rlimit no_core = {0, 0};
      setrlimit(RLIMIT_CORE, &no_core);
      static_cast<void>(action());
      _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

  const trainers::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "c.pt";
  const std::string first_ = Repeated("first"), second_ = Repeated("second"),
                    third_ = Repeated("third");
};

TEST_F(CheckpointFileTest, HoldsTheNewestAndTheOneBefore) {
  ASSERT_TRUE(Write(first_).ok());
  EXPECT_THAT(Files(), ElementsAre("c.pt"));
  ASSERT_TRUE(Write(second_).ok());
  ASSERT_TRUE(Write(third_).ok());
  EXPECT_EQ(At(path_), third_);
  EXPECT_EQ(At(PreviousGeneration(path_)), second_);
  EXPECT_THAT(Files(), ElementsAre("c.pt", "c.pt.previous"));
}

TEST_F(CheckpointFileTest, KeepsNoPreviousByDefault) {
  for (const std::string& content : {first_, second_}) {
    ASSERT_TRUE(WriteCheckpointFile(path_, content, false).ok());
  }
  EXPECT_EQ(At(path_), second_);
  EXPECT_THAT(Files(), ElementsAre("c.pt"));
}

TEST_F(CheckpointFileTest, FileAndDirectoryAreSynced) {
  ASSERT_TRUE(Write(first_).ok());
  disk = {};
  ASSERT_TRUE(Write(second_).ok());
  // The content is synced before its name, and the new name before the old
  // content gets its name.
  EXPECT_EQ(disk.names, "wwslrsrs");
}

TEST_F(CheckpointFileTest, EveryFlippedBitIsReported) {
  ASSERT_TRUE(Write(first_).ok());
  const std::string whole = FileBytes(path_);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    WriteBytes(path_, damaged);
    const auto content = ReadCheckpointFile(path_);
    ASSERT_EQ(content.status().code(), absl::StatusCode::kDataLoss)
        << "bit " << bit;
    ASSERT_THAT(content.status().message(), HasSubstr("'" + path_ + "'"));
  }
}

TEST_F(CheckpointFileTest, EveryTruncationAndAdditionIsReported) {
  ASSERT_TRUE(Write(first_).ok());
  const std::string whole = FileBytes(path_);
  for (size_t size = 0; size < whole.size() + 3; ++size) {
    if (size == whole.size()) continue;
    WriteBytes(path_, (whole + "abc").substr(0, size));
    const auto content = ReadCheckpointFile(path_);
    ASSERT_EQ(content.status().code(), absl::StatusCode::kDataLoss)
        << size << " bytes";
    ASSERT_THAT(content.status().message(), HasSubstr("'" + path_ + "'"));
  }
}

TEST_F(CheckpointFileTest, MixedBlocksOfTwoFilesAreReported) {
  // A file system that has lost blocks may leave such files.
  const std::string a(40'000, 'a');
  const std::string b(40'000, 'b');
  ASSERT_TRUE(Write(a).ok());
  ASSERT_TRUE(Write(b).ok());
  const std::string newer = FileBytes(path_);
  const std::string older = FileBytes(PreviousGeneration(path_));
  std::mt19937 random(1);  // NOLINT: the same blocks in every run
  for (int trial = 0; trial < 100; ++trial) {
    std::string mixed = newer;
    const size_t offset = random() % newer.size();
    const size_t length = 1 + random() % 4096;
    mixed.replace(offset, length, older.substr(offset, length));
    WriteBytes(path_, mixed);
    ASSERT_EQ(ReadCheckpointFile(path_).ok(), mixed == newer) << trial;
  }
}

TEST_F(CheckpointFileTest, ErrorsNameFileAndReason) {
  EXPECT_EQ(ReadCheckpointFile(path_).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(At(path_), AllOf(HasSubstr(path_), HasSubstr("No such file")));
  std::ofstream(path_) << "notes, longer than a header of a checkpoint";
  EXPECT_THAT(At(path_), HasSubstr("is not a checkpoint"));
  std::ofstream(path_).flush();
  EXPECT_THAT(At(path_), HasSubstr("is empty"));
  EXPECT_THAT(At(directory_.path()), HasSubstr("is not a regular file"));
  EXPECT_THAT(WriteCheckpointFile(directory_.path(), first_, true).message(),
              HasSubstr("is not a regular file"));
  EXPECT_THAT(WriteCheckpointFile("/nonexistent/c.pt", first_, true).message(),
              AllOf(HasSubstr("/nonexistent/c.pt"), HasSubstr("No such file")));
}

TEST_F(CheckpointFileTest, PreviousSurvivesAnInterruptedSaveOverADamagedFile) {
  int call = 0;
  for (int exit_code = 3; exit_code != 0; ++call) {
    ASSERT_TRUE(Write(first_).ok());
    ASSERT_TRUE(Write(second_).ok());
    std::ofstream(path_) << "damaged, though longer than a header";
    exit_code =
        InChild([&] { return WriteWith(DiskCalls::kEnds, call, third_); });
    EXPECT_THAT(Newest(), AnyOf(first_, third_)) << call;
  }
  EXPECT_GT(call, 6);
}

TEST_F(CheckpointFileTest, PlainArchivesOfTheFirstReleaseAreReadUnchecked) {
  const std::string archive = "PK\x03\x04 and so on";
  std::ofstream(path_) << archive;
  EXPECT_EQ(At(path_), archive);
}

// Faults at each call that a save makes.
class TroubleTest : public CheckpointFileTest,
                    public ::testing::WithParamInterface<bool> {
 protected:
  TroubleTest() { disk.has_hard_links = GetParam(); }
};

TEST_P(TroubleTest, ProcessThatEndsAtAnyCallLosesNothing) {
  for (const auto trouble : {DiskCalls::kEnds, DiskCalls::kWritesHalfAndEnds}) {
    int call = 0;
    for (int exit_code = 3; exit_code != 0; ++call) {
      ASSERT_TRUE(Write(first_).ok());
      ASSERT_TRUE(Write(second_).ok());
      exit_code = InChild([&] { return WriteWith(trouble, call, third_); });
      EXPECT_THAT(Newest(), AnyOf(second_, third_)) << call;
      // The next save removes what the dead process left.
      ASSERT_TRUE(Write(first_).ok());
      EXPECT_EQ(At(path_), first_);
      EXPECT_THAT(Files(), ElementsAre("c.pt", "c.pt.previous")) << call;
      EXPECT_THAT(At(PreviousGeneration(path_)), AnyOf(second_, third_));
    }
    EXPECT_GT(call, 6);
  }
}

TEST_P(TroubleTest, FailingCallIsAnErrorAndChangesNothing) {
  int call = 0;
  for (bool has_failed = true; has_failed; ++call) {
    ASSERT_TRUE(Write(first_).ok());
    ASSERT_TRUE(Write(second_).ok());
    const absl::Status status = WriteWith(DiskCalls::kFails, call, third_);
    has_failed = call < disk.made;
    const char failed =
        has_failed ? disk.names[static_cast<size_t>(call)] : 'l';
    disk.trouble = DiskCalls::kNone;
    // Saving also works on a file system without hard links.
    EXPECT_EQ(status.ok(), failed == 'l') << call;
    if (!status.ok()) {
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("'" + path_),
                        HasSubstr(failed == 'w' ? "No space" : "error")));
    }
    EXPECT_THAT(Newest(), AnyOf(second_, third_)) << call;
    EXPECT_THAT(At(PreviousGeneration(path_)), AnyOf(first_, second_)) << call;
    for (const std::string& name : Files()) {
      EXPECT_THAT(name, AnyOf("c.pt", "c.pt.previous")) << call;
    }
  }
  EXPECT_GT(call, 6);
}

INSTANTIATE_TEST_SUITE_P(OnFileSystems, TroubleTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "WithHardLinks"
                                             : "WithoutHardLinks";
                         });

TEST_F(CheckpointFileTest, FileSizeLimitIsAnErrorWithoutASignal) {
  const std::string large(100'000, 'x');
  ASSERT_TRUE(Write(first_).ok());
  EXPECT_EQ(InChild([&] {
              const rlimit part_of_it = {50'000, 50'000};
              setrlimit(RLIMIT_FSIZE, &part_of_it);
              const absl::Status status = Write(large);
              const std::string text(status.message());
              const bool told = text.find("File too large") != text.npos &&
                                text.find("'" + path_ + "'") != text.npos;
              // No signal is pending afterwards either.
              sigset_t pending;
              sigpending(&pending);
              _exit(told && !sigismember(&pending, SIGXFSZ) ? 7 : 8);
            }),
            7);
  EXPECT_EQ(At(path_), first_);
  EXPECT_THAT(Files(), ElementsAre("c.pt"));
}

TEST_F(CheckpointFileTest, TemporaryFilesInUseAreKept) {
  std::ofstream(directory_ / "c.pt.tmp.of_the_user") << "theirs";
  ASSERT_EQ(InChild([&] { return WriteWith(DiskCalls::kEnds, 2, first_); }), 3);
  std::set<std::string> files = Files();
  files.erase("c.pt.tmp.of_the_user");
  ASSERT_EQ(files.size(), 1U);
  const std::string left = *files.begin();
  {
    // As if its writer were alive: a writer holds the lock.
    const Descriptor held(open((directory_ / left).c_str(), O_RDWR));
    ASSERT_EQ(flock(held.get(), LOCK_EX | LOCK_NB), 0);
    ASSERT_TRUE(Write(second_).ok());
    EXPECT_THAT(Files(),
                UnorderedElementsAre("c.pt", left, "c.pt.tmp.of_the_user"));
  }
  ASSERT_TRUE(Write(second_).ok());
  EXPECT_THAT(Files(), UnorderedElementsAre("c.pt", "c.pt.previous",
                                            "c.pt.tmp.of_the_user"));
}

TEST_F(CheckpointFileTest, WritersOfOneFileDoNotMixTheirContents) {
  std::vector<pid_t> writers;
  for (const char letter : {'a', 'b'}) {
    writers.push_back(fork());
    if (writers.back() != 0) continue;
    int failures = 0;
    for (int i = 0; i < 30; ++i) {
      failures += Write(std::string(30'000, letter)).ok() ? 0 : 1;
    }
    _exit(failures);
  }
  for (const pid_t writer : writers) {
    int status = 0;
    waitpid(writer, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  EXPECT_THAT(At(path_),
              AnyOf(std::string(30'000, 'a'), std::string(30'000, 'b')));
  ASSERT_TRUE(Write(first_).ok());
  EXPECT_THAT(Files(), ElementsAre("c.pt", "c.pt.previous"));
}

}  // namespace
}  // namespace hvdlite::base

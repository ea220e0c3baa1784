#include "trainers/data/run_generator.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/descriptor.h"
#include "support/command_line.h"
#include "support/input_error.h"
#include "support/output_file.h"
#include "support/process.h"
#include "support/progress_line.h"

namespace hvdlite::trainers {

int RunGenerator(CLI::App& app, int argc, char** argv,
                 const std::function<void()>& generate) {
  support::AddVersion(app);
  try {
    app.parse(argc, argv);
    generate();
  } catch (const CLI::ParseError& error) {
    return support::EndOfParsing(app, error).Tell();
  } catch (const support::InputError& error) {
    std::cerr << app.get_name() << ": " << error.what() << "\n";
    return support::kInputErrorExitCode;
  } catch (const std::exception& error) {
    std::cerr << app.get_name() << ": " << error.what() << "\n";
    return 1;
  }
  return 0;
}

namespace {

namespace fs = std::filesystem;

bool Exists(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(file, ignored));
}

void CreateDirectory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    throw support::InputError("cannot create '" + directory.string() +
                              "': " + error.message());
  }
}

// A new directory in `directory`, which the destructor removes.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const fs::path& directory)
      : path_((directory / ".generating.XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) {
      throw support::InputError("cannot create a directory in '" +
                                directory.string() +
                                "': " + std::strerror(errno));
    }
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  fs::path path() const { return path_; }

 private:
  std::string path_;
};

// During its lifetime, SIGINT or SIGTERM removes `directory` and ends this
// process.
class RemovalIfInterrupted {
 public:
  explicit RemovalIfInterrupted(fs::path directory)
      : directory_(std::move(directory)), done_(MakePipe()), guard_([this] {
          std::array<pollfd, 2> ready = {
              {{signals_.descriptor(), POLLIN, 0},
               {done_.reader.get(), POLLIN | POLLHUP, 0}}};
          while (poll(ready.data(), ready.size(), /*timeout=*/-1) < 0) {
          }
          if (ready[0].revents == 0) return;
          // Repeated, since the other thread may create files at the same time.
          constexpr int kMostTries = 1000;
          for (int i = 0; i < kMostTries && Exists(directory_); ++i) {
            std::error_code ignored;
            fs::remove_all(directory_, ignored);
          }
          EndBy(*signals_.Next(),
                "nothing is written; the same command starts from scratch");
        }) {}
  ~RemovalIfInterrupted() { Stop(); }
  RemovalIfInterrupted(const RemovalIfInterrupted&) = delete;
  RemovalIfInterrupted& operator=(const RemovalIfInterrupted&) = delete;

  // Afterwards a signal has no effect before EndIfInterrupted().
  void Stop() {
    done_.writer = base::Descriptor();
    if (guard_.joinable()) guard_.join();
  }
  void EndIfInterrupted() {
    const std::optional<int> number = signals_.Next();
    if (number.has_value()) EndBy(*number, "but all files are complete");
  }

 private:
  static base::Pipe MakePipe() {
    absl::StatusOr<base::Pipe> pipe = base::MakePipe();
    if (pipe.ok()) return *std::move(pipe);
    throw std::runtime_error(std::string(pipe.status().message()));
  }
  static void EndBy(int number, const char* means) {
    std::cerr << support::LineStart() << program_invocation_short_name
              << ": interrupted: " << means << "\n"
              << std::flush;
    signal(number, SIG_DFL);
    kill(getpid(), number);
    std::_Exit(128 + number);
  }

  const fs::path directory_;
  support::SignalPipe signals_;
  base::Pipe done_;
  std::thread guard_;
};

[[noreturn]] void FailToWrite(const fs::path& file) {
  throw support::InputError("cannot write '" + file.string() +
                            "': " + std::strerror(errno));
}

// One call for all files, since there may be thousands.
void SyncFileSystemOf(const fs::path& directory) {
  const base::Descriptor opened(
      open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid() || syncfs(opened.get()) != 0) FailToWrite(directory);
}

}  // namespace

void WriteDataSet(const fs::path& directory, const std::vector<fs::path>& files,
                  const std::vector<fs::path>& others, bool overwrite,
                  const std::function<void(const fs::path& directory)>& write) {
  CreateDirectory(directory);
  for (const fs::path& file : files) {
    if (!Exists(directory / file)) continue;
    support::RequireOutputs({{"--output", directory / file}}, overwrite);
  }
  for (const fs::path& file : others) {
    if (!Exists(directory / file)) continue;
    throw support::InputError(
        "'" + (directory / file).string() +
        "' belongs to another data set, which a trainer would also read; use "
        "another directory or remove that file");
  }
  const TemporaryDirectory temporary(directory);
  RemovalIfInterrupted interrupts(temporary.path());
  for (const fs::path& file : files) {
    CreateDirectory((temporary.path() / file).parent_path());
    CreateDirectory((directory / file).parent_path());
  }
  write(temporary.path());
  SyncFileSystemOf(temporary.path());
  interrupts.Stop();
  for (const fs::path& file : files) {
    if (std::rename((temporary.path() / file).c_str(),
                    (directory / file).c_str()) != 0) {
      FailToWrite(directory / file);
    }
  }
  interrupts.EndIfInterrupted();
}

}  // namespace hvdlite::trainers

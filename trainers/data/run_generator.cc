#include "trainers/data/run_generator.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <system_error>

#include "base/descriptor.h"
#include "tools/support/command_line.h"
#include "tools/support/input_error.h"
#include "tools/support/output_file.h"

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

// A new folder in `directory`, removed with its owner.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const fs::path& directory)
      : path_((directory / ".generating.XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) {
      throw support::InputError("cannot create a folder in '" +
                                directory.string() +
                                "': " + std::strerror(errno));
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  fs::path path() const { return path_; }

 private:
  std::string path_;
};

[[noreturn]] void FailToWrite(const fs::path& file) {
  throw support::InputError("cannot write '" + file.string() +
                            "': " + std::strerror(errno));
}

// All at once: there may be thousands of files.
void SyncFileSystemOf(const fs::path& folder) {
  const base::Descriptor opened(
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid() || syncfs(opened.get()) != 0) FailToWrite(folder);
}

}  // namespace

void WriteDataSet(const fs::path& directory, const std::vector<fs::path>& files,
                  const std::vector<fs::path>& others, bool overwrite,
                  const std::function<void(const fs::path& folder)>& write) {
  CreateDirectory(directory);
  for (const fs::path& file : files) {
    if (!Exists(directory / file)) continue;
    support::RequireOutputs({{"--output", directory / file}}, overwrite);
  }
  for (const fs::path& file : others) {
    if (!Exists(directory / file)) continue;
    throw support::InputError(
        "'" + (directory / file).string() +
        "' is of another data set and would be trained with, too; write to "
        "another directory or remove it");
  }
  const TemporaryFolder folder(directory);
  for (const fs::path& file : files) {
    CreateDirectory((folder.path() / file).parent_path());
    CreateDirectory((directory / file).parent_path());
  }
  write(folder.path());
  SyncFileSystemOf(folder.path());
  for (const fs::path& file : files) {
    if (std::rename((folder.path() / file).c_str(),
                    (directory / file).c_str()) != 0) {
      FailToWrite(directory / file);
    }
  }
}

}  // namespace hvdlite::trainers

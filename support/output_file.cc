#include "support/output_file.h"

#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/new_file.h"
#include "base/status_macros.h"
#include "support/input_error.h"

namespace hvdlite::support {
namespace {

// Checks an output without regard to the others.
absl::Status CheckAlone(const Output& output, bool overwrite) {
  struct stat about = {};
  const std::string what =
      absl::StrCat("cannot write '", output.file, "' (", output.flag, "): ");
  if (stat(output.file.c_str(), &about) == 0 && !S_ISREG(about.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, S_ISDIR(about.st_mode) ? "it is a directory, not"
                                                  : "it is not",
                     " a regular file; name another one"));
  }
  if (!overwrite && !output.may_exist &&
      lstat(output.file.c_str(), &about) == 0) {
    return absl::AlreadyExistsError(absl::StrCat(
        what, "it exists; ", output.instead.empty() ? "" : output.instead + ", ",
        "--overwrite replaces it, or name another file"));
  }
  if (!base::TemporaryFile(output.file).valid()) {
    return absl::InvalidArgumentError(absl::StrCat(what, std::strerror(errno)));
  }
  return absl::OkStatus();
}

std::vector<std::string> FilesOf(const std::vector<std::string>& inputs) {
  std::vector<std::string> files;
  for (const std::string& input : inputs) {
    if (input.empty()) continue;
    files.push_back(input);
    std::error_code error;
    for (std::filesystem::directory_iterator entry(input, error), end;
         !error && entry != end; entry.increment(error)) {
      files.push_back(entry->path());
    }
  }
  return files;
}

void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) throw InputError(std::string(status.message()));
}

}  // namespace

CLI::Option* AddOverwrite(CLI::App& app, bool& overwrite) {
  return app.add_flag("--overwrite", overwrite,
                      "Replace output files that exist; without this flag, "
                      "an existing file is an error");
}

absl::Status CheckOutputs(const std::vector<Output>& outputs, bool overwrite,
                          const std::vector<std::string>& inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Output& output = outputs[i];
    if (output.file.empty() || base::IsStream(output.file)) continue;
    const auto is_other = [&output](const std::string& other,
                                    const std::string& use) {
      return absl::AlreadyExistsError(absl::StrCat(
          "cannot write '", output.file, "' (", output.flag,
          "): it is the same file as '", other, "', which ", use,
          "; name another file"));
    };
    for (const std::string& input : FilesOf(inputs)) {
      if (base::IsSameFile(output.file, input)) {
        return is_other(input, "this command reads");
      }
    }
    for (size_t k = 0; k < i; ++k) {
      if (!outputs[k].file.empty() && !base::IsStream(outputs[k].file) &&
          base::IsSameFile(output.file, outputs[k].file)) {
        return is_other(outputs[k].file,
                        absl::StrCat(outputs[k].flag, " writes"));
      }
    }
    HVDLITE_RETURN_IF_ERROR(CheckAlone(output, overwrite));
  }
  return absl::OkStatus();
}

void RequireOutputs(const std::vector<Output>& outputs, bool overwrite,
                    const std::vector<std::string>& inputs) {
  ThrowIfError(CheckOutputs(outputs, overwrite, inputs));
}

absl::Status WriteNewFile(const std::string& file, const std::string& text) {
  HVDLITE_ASSIGN_OR_RETURN(base::NewFile written, base::NewFile::Open(file));
  HVDLITE_RETURN_IF_ERROR(written.Write(text));
  return written.Commit();
}

void WriteFile(const std::string& file, const std::string& text) {
  ThrowIfError(WriteNewFile(file, text));
}

}  // namespace hvdlite::support

#include "tools/scaling_sweep/run/results_file.h"

#include <fcntl.h>
#include <google/protobuf/text_format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "tools/scaling_sweep/run/spec.h"

namespace hvdlite::scaling_sweep {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;

std::string PathIn(const std::string& directory) {
  return (fs::path(directory) / kResultsName).string();
}

std::string HeaderLine(const Spec& spec) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(spec, &text);
  const nlohmann::ordered_json header = {
      {"program", "scaling_sweep"}, {"format", kFormat}, {"spec", text}};
  return header.dump(-1, ' ', false,
                     nlohmann::ordered_json::error_handler_t::replace);
}

absl::StatusOr<Spec> ParseHeader(const std::string& line) {
  const auto header = nlohmann::json::parse(line, nullptr, false);
  if (!header.is_object() || header.value("program", "") != "scaling_sweep" ||
      header.value("format", 0) != kFormat) {
    return absl::InvalidArgumentError("does not begin results of this program");
  }
  Spec spec;
  if (!google::protobuf::TextFormat::ParseFromString(header.value("spec", ""),
                                                     &spec)) {
    return absl::InvalidArgumentError("has a SPEC that cannot be read");
  }
  return spec;
}

struct FileContents {
  Results results;
  int64_t whole_bytes = 0;  // without a last line that is cut
};

absl::StatusOr<FileContents> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(absl::StrCat(
        "cannot read '", path, "': ", std::strerror(errno),
        "; name the folder that scaling_sweep SPEC --output has written"));
  }
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string text = stream.str();
  FileContents contents;
  contents.whole_bytes = static_cast<int64_t>(text.rfind('\n') + 1);
  if (contents.whole_bytes == 0) return contents;
  const std::vector<std::string> lines = absl::StrSplit(
      text.substr(0, static_cast<size_t>(contents.whole_bytes) - 1), '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto fail = [&](const absl::Status& status) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "': line ", i + 1, " ", status.message()));
    };
    if (i == 0) {
      absl::StatusOr<Spec> spec = ParseHeader(lines[i]);
      if (!spec.ok()) return fail(spec.status());
      contents.results.spec = *std::move(spec);
    } else {
      absl::StatusOr<Sample> sample = ParseSample(lines[i]);
      if (!sample.ok()) return fail(sample.status());
      contents.results.samples.push_back(*std::move(sample));
    }
  }
  return contents;
}

std::string SystemError(const std::string& what, const std::string& path) {
  return absl::StrCat("cannot ", what, " '", path, "': ", std::strerror(errno));
}

}  // namespace

absl::StatusOr<Results> ReadResults(const std::string& directory) {
  HVDLITE_ASSIGN_OR_RETURN(FileContents contents, ReadFile(PathIn(directory)));
  if (contents.whole_bytes == 0) {
    return absl::NotFoundError(
        absl::StrCat("'", PathIn(directory), "' holds nothing yet"));
  }
  return std::move(contents.results);
}

absl::StatusOr<ResultsFile> ResultsFile::Open(const std::string& directory,
                                              const Spec& spec) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot make the folder '", directory, "': ", error.message()));
  }
  const std::string path = PathIn(directory);
  base::Descriptor descriptor(
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!descriptor.valid()) {
    return absl::FailedPreconditionError(SystemError("write", path));
  }
  // Until the file is closed. Some file systems of clusters have no locks.
  if (flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", path,
                     "': another scaling_sweep writes here; wait for its end, "
                     "or name another --output"));
  }
  HVDLITE_ASSIGN_OR_RETURN(FileContents contents, ReadFile(path));
  if (contents.whole_bytes > 0 &&
      Identity(contents.results.spec) != Identity(spec)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "'", path,
        "' holds the results of another SPEC; name another --output, or remove "
        "that folder (only repeats and time_limit_seconds may change)"));
  }
  if (ftruncate(descriptor.get(), contents.whole_bytes) != 0) {
    return absl::InternalError(SystemError("cut the last line of", path));
  }
  ResultsFile file(directory, std::move(contents.results.samples),
                   std::move(descriptor));
  if (contents.whole_bytes == 0) {
    HVDLITE_RETURN_IF_ERROR(file.WriteLine(HeaderLine(spec)));
  }
  return file;
}

absl::Status ResultsFile::Append(const Sample& sample) {
  HVDLITE_RETURN_IF_ERROR(WriteLine(ToJsonLine(sample)));
  samples_.push_back(sample);
  return absl::OkStatus();
}

absl::Status ResultsFile::WriteLine(const std::string& line) {
  const std::string whole = line + "\n";
  size_t done = 0;
  while (done < whole.size()) {
    const ssize_t written =
        write(file_.get(), whole.data() + done, whole.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      return absl::InternalError(SystemError("write", PathIn(directory_)));
    }
    done += static_cast<size_t>(written);
  }
  if (fdatasync(file_.get()) != 0 && errno != EINVAL) {
    return absl::InternalError(SystemError("write", PathIn(directory_)));
  }
  return absl::OkStatus();
}

}  // namespace hvdlite::scaling_sweep

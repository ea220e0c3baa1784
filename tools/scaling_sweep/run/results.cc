#include "tools/scaling_sweep/run/results.h"

#include <fcntl.h>
#include <google/protobuf/text_format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "support/input_error.h"
#include "tools/scaling_sweep/run/configuration.h"
#include "tools/scaling_sweep/run/json_values.h"
#include "tools/scaling_sweep/run/spec.h"

namespace hvdlite::scaling_sweep {
namespace {

using nlohmann::json;

using Json = nlohmann::ordered_json;

// Serializes JSON, also with invalid UTF-8 in its strings.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr absl::string_view kHeaderStart = "{\"program\":";

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

bool HasOtherWorlds(const Spec& a, const Spec& b) {
  Spec worlds_of_a;
  *worlds_of_a.mutable_ranks() = a.ranks();
  *worlds_of_a.mutable_world() = a.world();
  Spec worlds_of_b;
  *worlds_of_b.mutable_ranks() = b.ranks();
  *worlds_of_b.mutable_world() = b.world();
  return worlds_of_a.SerializeAsString() != worlds_of_b.SerializeAsString();
}

absl::StatusOr<Spec> ParseHeader(const std::string& line) {
  const auto header = nlohmann::json::parse(line, nullptr, false);
  const auto field = [&](const char* key) {
    return header.is_object() ? header.value(key, json()) : json();
  };
  if (field("program") != "scaling_sweep" || field("format") != kFormat) {
    return absl::InvalidArgumentError("is not the header of a results file");
  }
  const json text = field("spec");
  Spec spec;
  google::protobuf::TextFormat::Parser parser;
  parser.SetRecursionLimit(kMostNesting);
  if (!text.is_string() ||
      !parser.ParseFromString(text.get<std::string>(), &spec)) {
    return absl::InvalidArgumentError("has an unreadable spec");
  }
  absl::Status status = CheckLimits(spec);
  if (status.ok()) status = Configurations(spec).status();
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("has an invalid spec: ", status.message()));
  }
  return spec;
}

struct FileContents {
  Results results;
  int64_t whole_bytes = 0;  // without an incomplete last line
};

absl::StatusOr<FileContents> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("cannot read '", path, "': ", std::strerror(errno),
                     "; name the --output directory of a sweep"));
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
    if (i == 0 || absl::StartsWith(lines[i], kHeaderStart)) {
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

// Both throw InputError; ParseSample converts it to an error.
void GetWhole(const Json& json, const char* key, int least, int& number) {
  const std::optional<int> value = WholeNumber(json.at(key), least);
  if (!value.has_value()) {
    throw support::InputError(
        absl::StrCat("\"", key, "\" is ", Dump(json.at(key)),
                     ", but must be a whole number from ", least, " to ",
                     std::numeric_limits<int>::max()));
  }
  number = *value;
}

double AtLeast(const Json& json, const char* key, double least) {
  const Json& value = json.at(key);
  if (!value.is_number() || !(value.get<double>() >= least) ||
      !std::isfinite(value.get<double>())) {
    throw support::InputError(
        absl::StrCat("\"", key, "\" has the impossible value ", Dump(value)));
  }
  return value.get<double>();
}

}  // namespace

std::string ToJsonLine(const Sample& sample) {
  Json json = {{"configuration", sample.configuration},
               {"repeat", sample.repeat},
               {"nodes", sample.nodes},
               {"ranks", sample.ranks},
               {"threads", sample.threads},
               {"mapping", sample.mapping},
               {"setting", sample.setting},
               {"oversubscribed", sample.oversubscribed},
               {"threads_used", sample.threads_used},
               {"items_per_second", nullptr},
               {"exit_code", sample.exit_code},
               {"failure", sample.failure},
               {"start_time", sample.start_time},
               {"seconds", sample.seconds},
               {"host", sample.host},
               {"cores", sample.cores},
               {"machine", sample.machine},
               {"command", sample.command},
               {"environment", sample.environment},
               {"report", sample.report},
               {"trace", sample.trace},
               {"log", sample.log}};
  if (sample.items_per_second) {
    json["items_per_second"] = *sample.items_per_second;
  }
  return Dump(json);
}

absl::StatusOr<Sample> ParseSample(const std::string& line) {
  try {
    const Json json = Json::parse(line);
    Sample sample;
    json.at("configuration").get_to(sample.configuration);
    GetWhole(json, "repeat", 0, sample.repeat);
    GetWhole(json, "nodes", 1, sample.nodes);
    GetWhole(json, "ranks", 1, sample.ranks);
    GetWhole(json, "threads", 0, sample.threads);
    json.at("mapping").get_to(sample.mapping);
    json.at("setting").get_to(sample.setting);
    json.at("oversubscribed").get_to(sample.oversubscribed);
    if (json.contains("threads_used")) {
      GetWhole(json, "threads_used", 0, sample.threads_used);
    }
    if (!json.at("items_per_second").is_null()) {
      sample.items_per_second = AtLeast(
          json, "items_per_second", std::numeric_limits<double>::denorm_min());
    }
    GetWhole(json, "exit_code", std::numeric_limits<int>::min(),
             sample.exit_code);
    json.at("failure").get_to(sample.failure);
    json.at("start_time").get_to(sample.start_time);
    sample.seconds = AtLeast(json, "seconds", 0);
    json.at("host").get_to(sample.host);
    GetWhole(json, "cores", 0, sample.cores);
    sample.machine = TextsIn(json.value("machine", Json()));
    json.at("command").get_to(sample.command);
    json.at("environment").get_to(sample.environment);
    json.at("report").get_to(sample.report);
    json.at("trace").get_to(sample.trace);
    json.at("log").get_to(sample.log);
    return sample;
  } catch (const support::InputError& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("is not a sample: ", error.what()));
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("is not a sample: ", error.what()));
  }
}

namespace {

// A sweep continues only in its own directory. It does not replace files of
// other programs that have the names of its files.
absl::Status CheckDirectory(const std::string& directory) {
  std::error_code error;
  if (fs::exists(PathIn(directory), error)) return absl::OkStatus();
  for (const char* name :
       {"table.txt", "table.csv", "report.html", "tuning.txt", "runs"}) {
    if (!fs::exists(fs::path(directory) / name, error)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot write to '", directory, "' (--output): it contains ", name,
        ", but no results of scaling_sweep; name another directory"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Results> ReadResults(const std::string& directory) {
  HVDLITE_ASSIGN_OR_RETURN(FileContents contents, ReadFile(PathIn(directory)));
  if (contents.whole_bytes == 0) {
    return absl::NotFoundError(
        absl::StrCat("'", PathIn(directory), "' is empty"));
  }
  return std::move(contents.results);
}

absl::StatusOr<ResultsFile> ResultsFile::Open(const std::string& directory,
                                              const Spec& spec) {
  HVDLITE_RETURN_IF_ERROR(CheckDirectory(directory));
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot make the directory '", directory, "': ", error.message()));
  }
  const std::string path = PathIn(directory);
  base::Descriptor descriptor(
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!descriptor.valid()) {
    return absl::FailedPreconditionError(SystemError("write", path));
  }
  // The lock is held until the file is closed. Some file systems have no locks.
  if (flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", path,
                     "': another scaling_sweep writes to it; wait until it "
                     "ends, or name another --output"));
  }
  HVDLITE_ASSIGN_OR_RETURN(FileContents contents, ReadFile(path));
  // Replacing a spec without samples loses nothing.
  if (contents.results.samples.empty()) contents.whole_bytes = 0;
  if (contents.whole_bytes > 0 &&
      Identity(contents.results.spec) != Identity(spec)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "'", path,
        "' contains results of another spec file or command; name another "
        "--output, or remove this directory (only worlds, --ranks, repeats, "
        "time limit and host names may change)"));
  }
  if (ftruncate(descriptor.get(), contents.whole_bytes) != 0) {
    return absl::InternalError(SystemError("cut the last line of", path));
  }
  ResultsFile file(directory, std::move(contents.results.samples),
                   std::move(descriptor));
  if (contents.whole_bytes == 0 ||
      HasOtherWorlds(contents.results.spec, spec)) {
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

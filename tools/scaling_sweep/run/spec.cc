#include "tools/scaling_sweep/run/spec.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/environment.h"
#include "base/status_macros.h"

namespace hvdlite::scaling_sweep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

const google::protobuf::FileDescriptor& File() {
  return *Spec::descriptor()->file();
}

// All fields of an enumeration's type have the same values.
const FieldDescriptor* FindEnumField(const std::string& name) {
  for (int i = 0; i < File().message_type_count(); ++i) {
    const FieldDescriptor* const field =
        File().message_type(i)->FindFieldByName(name);
    if (field != nullptr && field->enum_type() != nullptr) return field;
  }
  return nullptr;
}

std::string HintAmong(const std::string& name,
                      const std::vector<std::string>& known) {
  const std::string nearest = base::NearestName(name, known);
  return nearest.empty()
             ? absl::StrCat("known are ", absl::StrJoin(known, ", "))
             : absl::StrCat("did you mean ", nearest, "?");
}

// Returns a hint for an error of Protobuf's parser about an unknown field or
// enumeration value: "did you mean command?", or the known names. "" for other
// errors.
std::string HintFor(const std::string& parser_error) {
  // 'Message type "pkg.Spec" has no field named "comand".', 'Unknown
  // enumeration value of "STRNG" for field "scaling".'
  const std::vector<std::string> parts = absl::StrSplit(parser_error, '"');
  if (parts.size() < 4) return "";
  std::vector<std::string> known;
  if (absl::StrContains(parts[2], "has no field named")) {
    const Descriptor* const message =
        File().pool()->FindMessageTypeByName(parts[1]);
    if (message == nullptr) return "";
    for (int i = 0; i < message->field_count(); ++i) {
      known.push_back(message->field(i)->name());
    }
    return HintAmong(parts[3], known);
  }
  if (absl::StrContains(parts[0], "enumeration value of")) {
    const FieldDescriptor* const field = FindEnumField(parts[3]);
    if (field == nullptr) return "";
    for (int i = 0; i < field->enum_type()->value_count(); ++i) {
      known.push_back(field->enum_type()->value(i)->name());
    }
    return HintAmong(parts[1], known);
  }
  return "";
}

constexpr double kDefaultTimeLimitSeconds = 600;

// Keeps the first error with its line and column, counted from 1.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

const std::vector<std::string>& KnownNames() {
  static const auto* const names = new std::vector<std::string>{
      "report", "trace",          "ranks",   "nodes",
      "batch",  "ranks_per_node", "threads", "spec_dir"};
  return *names;
}

// Matches "{name}", but no other braces, such as those of JSON in an argument.
std::vector<std::string> NamesIn(const std::string& word) {
  std::vector<std::string> names;
  for (size_t at = word.find('{'); at != std::string::npos;
       at = word.find('{', at + 1)) {
    const size_t end =
        word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at + 1);
    if (end == std::string::npos || word[end] != '}' || end == at + 1) continue;
    names.push_back(word.substr(at + 1, end - at - 1));
  }
  return names;
}

}  // namespace

absl::StatusOr<Spec> ParseSpec(const std::string& text,
                               const std::string& where,
                               const std::vector<std::string>& hosts) {
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMostNesting);
  Spec spec;
  if (!parser.ParseFromString(text, &spec)) {
    const std::string hint = HintFor(error.text());
    return absl::InvalidArgumentError(
        absl::StrCat(where, ":", error.text(), hint.empty() ? "" : " ", hint,
                     " (a spec file is in Protobuf's text format; see "
                     "tools/scaling_sweep/run/sweep.proto)"));
  }
  if (!hosts.empty()) *spec.mutable_host() = {hosts.begin(), hosts.end()};
  if (const absl::Status status = CheckSpec(spec); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": ", status.message()));
  }
  if (spec.time_limit_seconds() == 0) {
    spec.set_time_limit_seconds(kDefaultTimeLimitSeconds);
  }
  return spec;
}

absl::StatusOr<Spec> LoadSpec(const std::string& path,
                              const std::vector<std::string>& hosts) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file || std::filesystem::is_directory(path)) {
    return absl::NotFoundError(absl::StrCat("cannot read the spec file '", path,
                                            "'; name a file in Protobuf's text "
                                            "format"));
  }
  HVDLITE_ASSIGN_OR_RETURN(Spec spec, ParseSpec(text.str(), path, hosts));
  const std::string directory =
      std::filesystem::absolute(path).parent_path().string();
  VisitTexts(spec, [&directory](const char* /*field*/, std::string& text) {
    text = FillIn(text, {{"spec_dir", directory}});
  });
  if (spec.name().empty()) {
    spec.set_name(std::filesystem::path(path).stem().string());
  }
  return spec;
}

std::string Identity(const Spec& spec) {
  Spec same = spec;
  same.clear_repeats();
  same.clear_time_limit_seconds();
  same.clear_host();  // a batch system assigns other hosts the next time
  if (!same.has_tune()) {
    same.clear_ranks();
    same.clear_world();
  } else {  // only the dimensions must be the same
    same.mutable_tune()->clear_candidates();
    same.mutable_tune()->clear_first_repeats();
    same.mutable_tune()->clear_final_repeats();
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(same, &text);
  return text;
}

absl::Status CheckPlaceholderNames(const std::string& where,
                                   const std::string& text) {
  const std::vector<std::string>& known = KnownNames();
  for (const std::string& name : NamesIn(text)) {
    if (std::count(known.begin(), known.end(), name) > 0) continue;
    const std::string nearest = base::NearestName(name, known);
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": {", name, "} is not a placeholder; ",
        nearest.empty()
            ? absl::StrCat("there are {", absl::StrJoin(known, "}, {"), "}")
            : absl::StrCat("did you mean {", nearest, "}?")));
  }
  return absl::OkStatus();
}

std::string FillIn(const std::string& argument,
                   const std::map<std::string, std::string>& values) {
  std::vector<std::pair<std::string, std::string>> replacements;
  for (const auto& [name, value] : values) {
    replacements.emplace_back(absl::StrCat("{", name, "}"), value);
  }
  return absl::StrReplaceAll(argument, replacements);
}

}  // namespace hvdlite::scaling_sweep

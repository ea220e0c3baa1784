#include "tools/scaling_sweep/run/spec.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/scaling_sweep/run/placeholders.h"
#include "tools/scaling_sweep/run/spec_checks.h"
#include "tools/scaling_sweep/run/spec_hint.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr double kDefaultTimeLimitSeconds = 600;

// Keeps the first error, with its place for people, who count from 1.
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

}  // namespace

absl::StatusOr<Spec> ParseSpec(const std::string& text,
                               const std::string& where) {
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  Spec spec;
  if (!parser.ParseFromString(text, &spec)) {
    const std::string hint = HintFor(error.text());
    return absl::InvalidArgumentError(
        absl::StrCat(where, ":", error.text(), hint.empty() ? "" : " ", hint,
                     " (a SPEC is in Protobuf's text format; its fields are in "
                     "tools/scaling_sweep/sweep.proto)"));
  }
  if (const absl::Status status = CheckSpec(spec); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": ", status.message()));
  }
  if (spec.time_limit_seconds() == 0) {
    spec.set_time_limit_seconds(kDefaultTimeLimitSeconds);
  }
  return spec;
}

absl::StatusOr<Spec> LoadSpec(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file || std::filesystem::is_directory(path)) {
    return absl::NotFoundError(absl::StrCat("cannot read the SPEC '", path,
                                            "'; name a file in Protobuf's text "
                                            "format"));
  }
  HVDLITE_ASSIGN_OR_RETURN(Spec spec, ParseSpec(text.str(), path));
  const std::string folder =
      std::filesystem::absolute(path).parent_path().string();
  VisitTexts(spec, [&folder](const char* /*field*/, std::string& text) {
    text = FillIn(text, {{"spec_dir", folder}});
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
  if (same.has_tune()) {  // of it the dimensions count
    same.mutable_tune()->clear_candidates();
    same.mutable_tune()->clear_first_repeats();
    same.mutable_tune()->clear_final_repeats();
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(same, &text);
  return text;
}

}  // namespace hvdlite::scaling_sweep

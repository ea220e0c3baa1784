#include "tools/scaling_sweep/spec_hint.h"

#include <google/protobuf/descriptor.h>

#include <regex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/environment.h"
#include "tools/scaling_sweep/sweep.pb.h"

namespace hvdlite::scaling_sweep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

const google::protobuf::FileDescriptor& File() {
  return *Spec::descriptor()->file();
}

// Fields of an enumeration's type have the same values wherever they stand.
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

}  // namespace

std::string HintFor(const std::string& parser_error) {
  static const auto* const field_error =
      new std::regex(R"re(type "([\w.]+)" has no field named "(\w+)")re");
  static const auto* const value_error =
      new std::regex(R"re(enumeration value of "(\w+)" for field "(\w+)")re");
  std::smatch match;
  std::vector<std::string> known;
  if (std::regex_search(parser_error, match, *field_error)) {
    const Descriptor* const message =
        File().pool()->FindMessageTypeByName(match[1]);
    if (message == nullptr) return "";
    for (int i = 0; i < message->field_count(); ++i) {
      known.push_back(message->field(i)->name());
    }
    return HintAmong(match[2], known);
  }
  if (std::regex_search(parser_error, match, *value_error)) {
    const FieldDescriptor* const field = FindEnumField(match[2]);
    if (field == nullptr) return "";
    for (int i = 0; i < field->enum_type()->value_count(); ++i) {
      known.push_back(field->enum_type()->value(i)->name());
    }
    return HintAmong(match[1], known);
  }
  return "";
}

}  // namespace hvdlite::scaling_sweep

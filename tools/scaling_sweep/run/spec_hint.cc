#include "tools/scaling_sweep/run/spec_hint.h"

#include <google/protobuf/descriptor.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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

}  // namespace hvdlite::scaling_sweep

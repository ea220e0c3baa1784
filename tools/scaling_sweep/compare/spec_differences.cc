#include "tools/scaling_sweep/compare/spec_differences.h"

#include <google/protobuf/util/message_differencer.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hvdlite::scaling_sweep {
namespace {

using google::protobuf::util::MessageDifferencer;

std::vector<std::string> Differences(const google::protobuf::Message& a,
                                     const google::protobuf::Message& b) {
  MessageDifferencer differencer;
  // A word that is added does not change all after it.
  differencer.set_repeated_field_comparison(MessageDifferencer::AS_SMART_LIST);
  // Nor does the order of variables matter.
  const auto* const name =
      Variable::descriptor()->FindFieldByNumber(Variable::kNameFieldNumber);
  differencer.TreatAsMap(
      Spec::descriptor()->FindFieldByNumber(Spec::kEnvironmentFieldNumber),
      name);
  differencer.TreatAsMap(Setting::descriptor()->FindFieldByNumber(
                             Setting::kEnvironmentFieldNumber),
                         name);
  std::string text;
  differencer.ReportDifferencesToString(&text);
  differencer.Compare(a, b);
  std::vector<std::string> lines =
      absl::StrSplit(text, '\n', absl::SkipEmpty());
  // What is there, though elsewhere.
  std::erase_if(lines, [](const std::string& line) {
    return absl::StartsWith(line, "moved:");
  });
  return lines;
}

// Of what every run has in common.
Spec CommonPart(Spec spec) {
  spec.clear_name();
  spec.clear_repeats();
  spec.clear_time_limit_seconds();
  spec.clear_order();
  spec.clear_seed();
  spec.clear_items_per_epoch();
  spec.clear_cores_per_node();
  spec.clear_tune();
  // Configurations.
  spec.clear_ranks();
  spec.clear_world();
  spec.clear_mapping();
  spec.clear_threads();
  spec.clear_setting();
  return spec;
}

Setting OwnPart(Setting setting) {
  setting.clear_ranks();
  setting.clear_world();
  setting.clear_mapping();
  setting.clear_threads();
  return setting;
}

const Setting* Find(const Spec& spec, const std::string& name) {
  for (const Setting& setting : spec.setting()) {
    if (setting.name() == name) return &setting;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> SpecDifferences(
    const Spec& a, const Spec& b, const std::optional<std::string>& setting) {
  std::vector<std::string> lines = Differences(CommonPart(a), CommonPart(b));
  for (const Setting& in_a : a.setting()) {
    if (setting && in_a.name() != *setting) continue;
    const Setting* const in_b = Find(b, in_a.name());
    if (in_b == nullptr) continue;
    for (const std::string& line : Differences(OwnPart(in_a), OwnPart(*in_b))) {
      lines.push_back(absl::StrCat("setting '", in_a.name(), "': ", line));
    }
  }
  return lines;
}

}  // namespace hvdlite::scaling_sweep

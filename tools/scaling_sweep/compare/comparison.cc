#include "tools/scaling_sweep/compare/comparison.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "support/text_table.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {
namespace {

using google::protobuf::util::MessageDifferencer;

std::vector<std::string> Differences(const google::protobuf::Message& a,
                                     const google::protobuf::Message& b) {
  MessageDifferencer differencer;
  // An added argument must not shift the arguments after it.
  differencer.set_repeated_field_comparison(MessageDifferencer::AS_SMART_LIST);
  // The order of variables does not matter either.
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
  // An element that only moved in its list is no difference.
  std::erase_if(lines, [](const std::string& line) {
    return absl::StartsWith(line, "moved:");
  });
  return lines;
}

// Returns the parts of a spec that decide what every run does.
Spec CommonPart(Spec spec) {
  spec.clear_name();
  spec.clear_repeats();
  spec.clear_time_limit_seconds();
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

// Returns a line for each difference that changes what a run does: program,
// mini-batch, variables, flags, counted items. Number and order of runs and the
// list of configurations do not count. Compares settings of the same name, or
// only `setting` if it is given; "" means none. The lines are for people:
// "modified: batch.size: 8 -> 16".
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

struct Speeds {
  std::string configuration;  // its key
  std::map<int, double> by_repeat;
  bool oversubscribed = false;
};

std::string NameOf(const Sample& sample, bool with_setting) {
  std::string name =
      absl::StrCat(sample.nodes, sample.nodes == 1 ? " node, " : " nodes, ",
                   sample.ranks, sample.ranks == 1 ? " rank" : " ranks");
  if (sample.threads > 0) absl::StrAppend(&name, " x ", sample.threads);
  if (!sample.mapping.empty()) absl::StrAppend(&name, ", ", sample.mapping);
  if (with_setting && !sample.setting.empty()) {
    absl::StrAppend(&name, ", ", sample.setting);
  }
  return name;
}

using NamedSpeeds = std::vector<std::pair<std::string, Speeds>>;

const Speeds* Find(const NamedSpeeds& all, const std::string& name) {
  for (const auto& [other, speeds] : all) {
    if (other == name) return &speeds;
  }
  return nullptr;
}

// Groups the samples of one setting (of all if none is given), in the order of
// the results.
absl::StatusOr<NamedSpeeds> SpeedsOf(
    const Side& side, const std::optional<std::string>& setting) {
  NamedSpeeds all;
  for (const Sample& sample : side.results.samples) {
    if (setting && sample.setting != *setting) continue;
    const std::string name = NameOf(sample, /*with_setting=*/!setting);
    auto found = std::find_if(all.begin(), all.end(), [&](const auto& entry) {
      return entry.first == name;
    });
    if (found == all.end()) {
      found = all.insert(all.end(), {name, {}});
      found->second.configuration = sample.configuration;
    }
    if (found->second.configuration != sample.configuration) {
      return absl::InvalidArgumentError(absl::StrCat(
          "two configurations of one side are '", name, "': \"",
          found->second.configuration, "\" and \"", sample.configuration,
          "\"; rename their settings, or compare one setting: DIR:SETTING"));
    }
    found->second.oversubscribed |= sample.oversubscribed;
    if (sample.items_per_second) {
      found->second.by_repeat[sample.repeat] = *sample.items_per_second;
    }
  }
  return all;
}

// Returns the setting of `side` to compare with `other`. If only `other` names
// one: the same setting, or the only one of `side`. nullopt: all settings.
absl::StatusOr<std::optional<std::string>> SettingFor(const Side& side,
                                                      const Side& other) {
  if (side.setting || !other.setting) return side.setting;
  std::set<std::string> settings;
  for (const Sample& sample : side.results.samples) {
    settings.insert(sample.setting);
  }
  if (settings.contains(*other.setting)) return other.setting;
  if (settings.size() == 1) return *settings.begin();
  return absl::InvalidArgumentError(
      absl::StrCat("one side has the setting '", *other.setting,
                   "', which the other side lacks; name one of its settings as "
                   "DIR:SETTING: '",
                   absl::StrJoin(settings, "', '"), "'"));
}

std::vector<double> Ratios(const Speeds& a, const Speeds& b) {
  std::vector<double> ratios;
  for (const auto& [repeat, speed] : a.by_repeat) {
    const auto other = b.by_repeat.find(repeat);
    if (other != b.by_repeat.end()) ratios.push_back(other->second / speed);
  }
  return ratios;
}

std::set<std::string> Hosts(const Side& side) {
  std::set<std::string> hosts;
  for (const Sample& sample : side.results.samples) hosts.insert(sample.host);
  return hosts;
}

absl::Status CheckItems(const Spec& a, const Spec& b) {
  if (a.items().empty() || b.items().empty() || a.items() == b.items()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the first counts ", a.items(), ", the second ", b.items(),
      ": their speeds cannot be compared; measure both with the same items"));
}

// Notes how the compared settings differ. Settings with different names differ
// on purpose.
std::vector<std::string> SpecNotes(
    const Side& a, const Side& b, const std::optional<std::string>& setting_a,
    const std::optional<std::string>& setting_b) {
  const std::optional<std::string> same =
      setting_a == setting_b ? setting_a : "";
  std::vector<std::string> notes;
  for (const std::string& line :
       SpecDifferences(a.results.spec, b.results.spec, same)) {
    notes.push_back(absl::StrCat("the spec files differ: ", line));
  }
  return notes;
}

std::string PercentText(double ratio) {
  return absl::StrFormat("%+.1f %%", (ratio - 1) * 100);
}

std::string VerdictOn(const support::RatioEstimate& ratio) {
  return ratio.interval ? SignificanceText(Judge(ratio))
                        : "too few pairs to judge";
}

std::vector<std::string> Cells(const std::string& name, int pairs,
                               const support::RatioEstimate& ratio,
                               std::optional<double> threshold) {
  std::string verdict = VerdictOn(ratio);
  if (threshold && LiesBelow(ratio, *threshold)) {
    absl::StrAppend(&verdict, ": FAILS ", PercentText(*threshold));
  }
  return {name, absl::StrCat(pairs), PercentText(ratio.ratio),
          ratio.interval
              ? absl::StrCat(PercentText(ratio.interval->low), " .. ",
                             PercentText(ratio.interval->high))
              : "- (single pairs)",
          verdict};
}

// Estimates the ratio of all configurations in `groups` together.
void EstimateOverall(const std::vector<std::vector<double>>& groups,
                     uint64_t seed, Comparison& comparison) {
  std::vector<std::vector<double>> scattered;
  std::vector<std::string> left_out;
  for (size_t i = 0; i < groups.size(); ++i) {
    const ComparedConfiguration& compared = comparison.configurations[i];
    if (groups[i].size() > 1) {
      scattered.push_back(groups[i]);
      comparison.overall_pairs += compared.pairs;
    } else {
      left_out.push_back(
          absl::StrCat(compared.name,
                       ": one pair has no interval, so it does not count in "
                       "'all together'"));
    }
  }
  if (scattered.empty()) {
    comparison.overall = support::EstimateRatio(groups, seed);
    comparison.overall_pairs = static_cast<int>(groups.size());
    return;
  }
  comparison.overall = support::EstimateRatio(scattered, seed);
  comparison.notes.insert(comparison.notes.end(), left_out.begin(),
                          left_out.end());
}

}  // namespace

std::string SignificanceText(Significance significance) {
  switch (significance) {
    case Significance::kFaster:
      return "faster";
    case Significance::kSlower:
      return "slower";
    case Significance::kNoDifference:
      break;
  }
  return "no significant difference";
}

Significance Judge(const support::RatioEstimate& estimate) {
  if (estimate.interval && estimate.interval->low > 1)
    return Significance::kFaster;
  if (LiesBelow(estimate, 1)) return Significance::kSlower;
  return Significance::kNoDifference;
}

bool LiesBelow(const support::RatioEstimate& estimate, double threshold) {
  return estimate.interval && estimate.interval->high < threshold;
}

absl::StatusOr<Comparison> Compare(const Side& a, const Side& b,
                                   uint64_t seed) {
  HVDLITE_RETURN_IF_ERROR(CheckItems(a.results.spec, b.results.spec));
  HVDLITE_ASSIGN_OR_RETURN(const auto setting_a, SettingFor(a, b));
  HVDLITE_ASSIGN_OR_RETURN(const auto setting_b, SettingFor(b, a));
  HVDLITE_ASSIGN_OR_RETURN(const NamedSpeeds speeds_a, SpeedsOf(a, setting_a));
  HVDLITE_ASSIGN_OR_RETURN(const NamedSpeeds speeds_b, SpeedsOf(b, setting_b));
  Comparison comparison;
  comparison.notes = SpecNotes(a, b, setting_a, setting_b);
  std::vector<std::vector<double>> groups;
  bool broken = false;  // a configuration of both no longer succeeds
  for (const auto& [name, in_a] : speeds_a) {
    const Speeds* const in_b = Find(speeds_b, name);
    const bool lost =
        !in_a.by_repeat.empty() && (in_b == nullptr || in_b->by_repeat.empty());
    if (lost) comparison.lost.push_back(name);
    broken |= lost && in_b != nullptr;
    if (in_b == nullptr) {
      comparison.notes.push_back(absl::StrCat(name, ": only in the first"));
      continue;
    }
    const std::vector<double> ratios = Ratios(in_a, *in_b);
    if (ratios.empty()) {
      comparison.notes.push_back(
          absl::StrCat(name, ": no repeat succeeded on both sides"));
      continue;
    }
    comparison.configurations.push_back(
        {.name = name,
         .pairs = static_cast<int>(ratios.size()),
         .oversubscribed = in_a.oversubscribed || in_b->oversubscribed,
         .ratio = support::EstimateRatio({ratios}, seed)});
    groups.push_back(ratios);
  }
  for (const auto& [name, speeds] : speeds_b) {
    if (Find(speeds_a, name) != nullptr) continue;
    comparison.notes.push_back(absl::StrCat(name, ": only in the second"));
  }
  if (groups.empty() && !broken) {
    return absl::InvalidArgumentError(
        "no configuration and repeat succeeded on both sides; measure both "
        "with the same spec file");
  }
  if (Hosts(a) != Hosts(b)) {
    comparison.notes.push_back("the two ran on different hosts");
  }
  if (!groups.empty()) EstimateOverall(groups, seed, comparison);
  return comparison;
}

absl::StatusOr<double> ParseThreshold(const std::string& text) {
  absl::string_view number = text;
  double percent = 0;
  if (!absl::ConsumeSuffix(&number, "%") ||
      !absl::SimpleAtod(number, &percent) || !(percent > -100) ||
      !(percent <= 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--fail-if must be a percentage from -100% to 0%, such as -5%, not '",
        text, "'"));
  }
  return 1 + percent / 100;
}

std::string ComparisonText(const Comparison& comparison,
                           std::optional<double> threshold) {
  std::vector<std::vector<std::string>> rows;
  for (const ComparedConfiguration& compared : comparison.configurations) {
    rows.push_back(Cells(
        compared.name + (compared.oversubscribed ? " (oversubscribed)" : ""),
        compared.pairs, compared.ratio, threshold));
  }
  std::string text;
  if (!rows.empty()) {
    rows.push_back(Cells("all together", comparison.overall_pairs,
                         comparison.overall, threshold));
    text = support::TextTable({"configuration", "pairs", "second / first",
                               "95 % interval", "verdict"},
                              rows);
  }
  for (const std::string& note : comparison.notes) {
    absl::StrAppend(&text, "note: ", note, "\n");
  }
  for (const std::string& name : comparison.lost) {
    absl::StrAppend(&text, threshold ? "FAILS: " : "note: ", name,
                    ": no run succeeded in the second\n");
  }
  const std::string overall = rows.empty() ? "no run succeeded on both sides"
                                           : VerdictOn(comparison.overall);
  absl::StrAppend(&text, "verdict: ",
                  threshold && Fails(comparison, *threshold)
                      ? absl::StrCat("FAILS ", PercentText(*threshold),
                                     "; all together: ", overall)
                      : overall,
                  "\n");
  return text;
}

bool Fails(const Comparison& comparison, double threshold) {
  return !comparison.lost.empty() || LiesBelow(comparison.overall, threshold) ||
         std::any_of(comparison.configurations.begin(),
                     comparison.configurations.end(),
                     [&](const ComparedConfiguration& compared) {
                       return LiesBelow(compared.ratio, threshold);
                     });
}

}  // namespace hvdlite::scaling_sweep

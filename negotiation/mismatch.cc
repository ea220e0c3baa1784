#include "negotiation/mismatch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "negotiation/rank_list.h"

namespace hvdlite::negotiation {
namespace {

std::string OpText(const Request& request) {
  return request.average ? "average"
                         : std::string(collective::NameOf(request.op));
}

std::string ListText(const std::vector<int64_t>& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ", "), "]");
}

std::string StridesText(const Request& request) {
  return request.strides.empty() ? "row-major" : ListText(request.strides);
}

struct Property {
  const char* name;
  std::string (*text)(const Request&);
  const char* remedy;
};

// In the order in which they are compared: an earlier one explains later ones.
constexpr Property kProperties[] = {
    {"operation",
     [](const Request& r) {
       return absl::AsciiStrToLower(std::string(NameOf(r.collective)));
     },
     "Call the same operation under this name on every rank, or give the "
     "operations different names."},
    {"dtype",
     [](const Request& r) { return std::string(collective::NameOf(r.dtype)); },
     "Convert the tensors to one dtype first."},
    {"shape", [](const Request& r) { return ListText(r.shape); },
     "Pass tensors of the same shape under this name on every rank."},
    {"op", OpText, "Pass the same op on every rank."},
    {"root rank", [](const Request& r) { return absl::StrCat(r.root_rank); },
     "Pass the same root_rank on every rank."},
    {"prescale factor",
     [](const Request& r) { return absl::StrCat(r.prescale_factor); },
     "Pass the same prescale_factor on every rank."},
    {"postscale factor",
     [](const Request& r) { return absl::StrCat(r.postscale_factor); },
     "Pass the same postscale_factor on every rank."},
    {"memory layout (strides)", StridesText,
     "Use the same memory format on every rank, or pass .contiguous() "
     "tensors."},
};

// Values of `property` with the ranks that have each, by lowest rank.
std::vector<std::pair<std::string, std::vector<int>>> Sides(
    absl::Span<const Variant> variants, const Property& property) {
  std::vector<std::pair<std::string, std::vector<int>>> sides;
  for (const Variant& variant : variants) {
    const std::string value = property.text(variant.request);
    auto side = std::find_if(sides.begin(), sides.end(),
                             [&](const auto& s) { return s.first == value; });
    if (side == sides.end()) side = sides.insert(side, {value, {}});
    side->second.insert(side->second.end(), variant.ranks.begin(),
                        variant.ranks.end());
  }
  for (auto& [value, ranks] : sides) std::sort(ranks.begin(), ranks.end());
  std::sort(sides.begin(), sides.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  return sides;
}

}  // namespace

bool Agree(absl::Span<const Variant> variants) {
  return variants.empty() ||
         (variants.size() == 1 && variants.front().request.refusal.empty());
}

std::string DescribeMismatch(absl::Span<const Variant> variants) {
  const std::string& name = variants.front().request.name;
  for (const Variant& variant : variants) {
    if (variant.request.refusal.empty()) continue;
    return absl::StrCat("'", name, "' cannot be done on ",
                        FormatRanks(variant.ranks), ": ",
                        variant.request.refusal);
  }
  for (const Property& property : kProperties) {
    const auto sides = Sides(variants, property);
    if (sides.size() < 2) continue;
    return absl::StrCat(
        "the ranks disagree about the ", property.name, " of '", name, "': ",
        absl::StrJoin(sides, "; ",
                      [](std::string* out, const auto& side) {
                        absl::StrAppend(out, side.first, " on ",
                                        FormatRanks(side.second));
                      }),
        ". ", property.remedy);
  }
  return absl::StrCat("the ranks disagree about '", name, "'");
}

}  // namespace hvdlite::negotiation

#include "negotiation/protocol/request.h"

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvdlite::negotiation {
namespace {

constexpr bool RowsAreInOrder() {
  for (int i = 0; i < kNumCollectives; ++i) {
    if (static_cast<int>(kCollectives[i].collective) != i) return false;
  }
  return true;
}
static_assert(RowsAreInOrder());

int64_t Product(const TensorSpec& tensor, size_t first_dimension) {
  auto product = static_cast<int64_t>(collective::SizeOf(tensor.dtype));
  for (size_t i = first_dimension; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] != kAnyLength) product *= tensor.shape[i];
  }
  return product;
}

std::string OpText(const Request& request) {
  return request.average ? "average"
                         : std::string(collective::NameOf(request.op));
}

std::string ListText(absl::Span<const int64_t> numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ", "), "]");
}

// The first dimension may differ among ranks: "[any, 3]".
std::string ShapeText(const TensorSpec& tensor) {
  return absl::StrCat("[",
                      absl::StrJoin(tensor.shape, ", ",
                                    [](std::string* out, int64_t length) {
                                      if (length == kAnyLength) {
                                        out->append("any");
                                      } else {
                                        absl::StrAppend(out, length);
                                      }
                                    }),
                      "]");
}

std::string DtypeText(const TensorSpec& tensor) {
  return std::string(collective::NameOf(tensor.dtype));
}

std::string StridesText(const TensorSpec& tensor) {
  return tensor.strides.empty() ? "row-major" : ListText(tensor.strides);
}

// Joins the texts of all tensors. For a group, only tensors that differ matter;
// see KeepDifferingTensors.
template <std::string (*text)(const TensorSpec&)>
std::string OfTensors(const Request& request) {
  return absl::StrJoin(request.tensors, " ",
                       [](std::string* out, const TensorSpec& tensor) {
                         out->append(text(tensor));
                       });
}

struct Property {
  const char* name;
  std::string (*text)(const Request&);
  const char* remedy;
  bool of_tensors = false;
};

// They are compared in this order: an earlier difference explains later ones.
constexpr Property kProperties[] = {
    {"operation",
     [](const Request& r) {
       return absl::AsciiStrToLower(std::string(NameOf(r.collective)));
     },
     "Call the same operation under this name on every rank, or give the "
     "operations different names."},
    {"number of tensors",
     [](const Request& r) { return absl::StrCat(r.tensors.size()); },
     "Pass the same number of tensors to a grouped operation on every rank."},
    {"dtype", OfTensors<DtypeText>, "Convert the tensors to one dtype first.",
     /*of_tensors=*/true},
    {"shape", OfTensors<ShapeText>,
     "Pass tensors of the same shape under this name on every rank.",
     /*of_tensors=*/true},
    {"op", OpText, "Pass the same op on every rank."},
    {"compression",
     [](const Request& r) {
       return std::string(collective::NameOf(r.compression));
     },
     "Pass the same compression on every rank."},
    {"root rank", [](const Request& r) { return absl::StrCat(r.root_rank); },
     "Pass the same root_rank on every rank."},
    {"prescale factor",
     [](const Request& r) { return absl::StrCat(r.prescale_factor); },
     "Pass the same prescale_factor on every rank."},
    {"postscale factor",
     [](const Request& r) { return absl::StrCat(r.postscale_factor); },
     "Pass the same postscale_factor on every rank."},
    {"memory layout (strides)", OfTensors<StridesText>,
     "Use the same memory format on every rank, or pass .contiguous() "
     "tensors.",
     /*of_tensors=*/true},
    {"recording of gradients",
     [](const Request& r) {
       return std::string(r.differentiable ? "recorded" : "not recorded");
     },
     "Backward is a collective operation, too: pass tensors that require a "
     "gradient on every rank or on none, and use the same GradMode."},
    {"ranks",
     [](const Request& r) {
       return absl::StrCat("[", absl::StrJoin(r.members, ", "), "]");
     },
     "Pass the same ranks to add_process_set() on every rank."},
    {"process set", [](const Request& r) { return absl::StrCat(r.removed); },
     "Pass the same process set to remove_process_set() on every rank."},
};

// A value with the ranks that have it.
using Side = std::pair<std::string, RankRuns>;

// Values of `text` with the ranks that have each, by lowest rank.
std::vector<Side> Sides(
    absl::Span<const Variant> variants,
    absl::FunctionRef<std::string(const Variant& variant)> text) {
  std::vector<Side> sides;
  for (const Variant& variant : variants) {
    const std::string value = text(variant);
    auto side = std::find_if(sides.begin(), sides.end(),
                             [&](const auto& s) { return s.first == value; });
    if (side == sides.end()) side = sides.insert(side, {value, {}});
    side->second.Add(variant.ranks);
  }
  std::sort(sides.begin(), sides.end(), [](const auto& a, const auto& b) {
    return a.second.runs().front().first < b.second.runs().front().first;
  });
  return sides;
}

// For example "[3] on rank 0; [4] on ranks 1-2".
std::string SidesText(absl::Span<const Side> sides) {
  return absl::StrJoin(sides, "; ", [](std::string* out, const Side& side) {
    absl::StrAppend(out, side.first, " on ", side.second.ToString());
  });
}

std::string DescribeSteps(const std::string& name,
                          absl::Span<const Variant> variants) {
  const std::vector<Side> sides = Sides(variants, [](const Variant& variant) {
    return variant.step == 0 ? "none" : absl::StrCat("step ", variant.step);
  });
  // The majority is right; on a tie, the side with the lowest rank.
  const auto right = std::max_element(
      sides.begin(), sides.end(), [](const Side& left, const Side& right) {
        return left.second.size() < right.second.size();
      });
  RankRuns wrong;
  for (const Side& side : sides) {
    if (&side != &*right) wrong.Add(side.second);
  }
  return absl::StrCat(
      "the ranks are in different steps with '", name, "': ", SidesText(sides),
      "; ", wrong.ToString(), wrong.size() == 1 ? " has" : " have",
      " skipped or repeated a step: call step() or zero_grad() alike on all "
      "ranks. To continue, call zero_grad() on all ranks and repeat the step. "
      "If only some ranks took the last step, call broadcast_parameters() "
      "first.");
}

// Removes the tensors of the group that are the same in all variants, so that
// the text is only about the others. Returns their indices.
std::vector<size_t> KeepDifferingTensors(std::vector<Variant>& variants) {
  std::vector<size_t> differing;
  const size_t count = variants.front().request.tensors.size();
  for (const Variant& variant : variants) {
    if (variant.request.tensors.size() != count) return {};
  }
  for (size_t i = 0; i < count; ++i) {
    for (const Variant& variant : variants) {
      if (variant.request.tensors[i] != variants.front().request.tensors[i]) {
        differing.push_back(i);
        break;
      }
    }
  }
  if (differing.empty() || count == 1) return {};
  for (Variant& variant : variants) {
    TensorSpecs kept;
    for (const size_t i : differing) kept.push_back(variant.request.tensors[i]);
    variant.request.tensors = std::move(kept);
  }
  return differing;
}

}  // namespace

absl::string_view NameOf(Collective collective) {
  const auto value = static_cast<int>(collective);
  return value < kNumCollectives ? kCollectives[value].name : "UNKNOWN";
}

int64_t SizeBytes(const TensorSpec& tensor) { return Product(tensor, 0); }

int64_t RowBytes(const TensorSpec& tensor) { return Product(tensor, 1); }

int64_t Request::size_bytes() const {
  int64_t bytes = 0;
  for (const TensorSpec& tensor : tensors) bytes += SizeBytes(tensor);
  return bytes;
}

bool Agree(absl::Span<const Variant> variants) {
  return variants.empty() ||
         (variants.size() == 1 && variants.front().request.local_error.empty());
}

uint32_t NextStep(absl::Span<const Variant> variants) {
  uint32_t last = 0;
  bool differ = false;
  for (const Variant& variant : variants) {
    differ = differ || variant.step != variants.front().step;
    last = std::max(last, variant.step);
  }
  return differ ? last + 1 : 0;
}

std::string DescribeMismatch(absl::Span<const Variant> all_variants) {
  std::vector<Variant> variants(all_variants.begin(), all_variants.end());
  const std::string name = variants.front().request.name;
  for (const Variant& variant : variants) {
    if (variant.request.local_error.empty()) continue;
    return absl::StrCat("'", name, "' cannot be done on ",
                        variant.ranks.ToString(), ": ",
                        variant.request.local_error);
  }
  if (NextStep(variants) != 0) return DescribeSteps(name, variants);
  const std::vector<size_t> differing = KeepDifferingTensors(variants);
  const std::string place =
      differing.empty()
          ? ""
          : absl::StrCat(" (tensor", differing.size() == 1 ? " " : "s ",
                         absl::StrJoin(differing, ", "), " of the group)");
  for (const Property& property : kProperties) {
    const auto sides = Sides(variants, [&](const Variant& variant) {
      return property.text(variant.request);
    });
    if (sides.size() < 2) continue;
    return absl::StrCat("the ranks disagree about the ", property.name, " of '",
                        name, "'", property.of_tensors ? place : "", ": ",
                        SidesText(sides), ". ", property.remedy);
  }
  return absl::StrCat("the ranks disagree about '", name, "'");
}

}  // namespace hvdlite::negotiation

#include "tools/doctor/checks/openmp_variables.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tools/support/kmp_translation.h"

namespace hvdlite::doctor {
namespace {

std::optional<Unread> UnreadKmp(const std::string& name,
                                const std::string& value,
                                const std::set<std::string>& openmp) {
  if (openmp.contains("LLVM")) return std::nullopt;
  return Unread{
      .why = absl::StrCat("the OpenMP runtime is that of ", *openmp.begin(),
                          "; KMP_ variables are for Intel's and LLVM's"),
      .instead = GnuInsteadOfKmp(name, value)};
}

// OMP_PLACES with one place per CPU, for a GOMP_CPU_AFFINITY like "0 3 4-10:2";
// empty if it is none.
std::string PlacesOfCpus(const std::string& list) {
  std::vector<std::string> places;
  for (const absl::string_view word :
       absl::StrSplit(list, absl::ByAnyChar(" ,"), absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> range_and_stride =
        absl::StrSplit(word, absl::MaxSplits(':', 1));
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(range_and_stride.first, absl::MaxSplits('-', 1));
    int first = 0;
    if (!absl::SimpleAtoi(ends.first, &first) || first < 0) return "";
    int last = first;
    if (!ends.second.empty() && !absl::SimpleAtoi(ends.second, &last)) {
      return "";
    }
    int stride = 1;
    if (!range_and_stride.second.empty() &&
        !absl::SimpleAtoi(range_and_stride.second, &stride)) {
      return "";
    }
    if (last < first || stride < 1) return "";
    const int count = (last - first) / stride + 1;
    std::string place = absl::StrCat("{", first, "}");
    if (count > 1) absl::StrAppend(&place, ":", count);
    if (count > 1 && stride > 1) absl::StrAppend(&place, ":", stride);
    places.push_back(std::move(place));
  }
  return absl::StrJoin(places, ",");
}

std::optional<Unread> UnreadGomp(const std::string& name,
                                 const std::string& value,
                                 const std::set<std::string>& openmp) {
  if (openmp.contains("GNU")) return std::nullopt;
  // LLVM's reads these two.
  if (openmp.contains("LLVM") &&
      (name == "GOMP_CPU_AFFINITY" || name == "GOMP_STACKSIZE")) {
    return std::nullopt;
  }
  std::string instead;
  if (name == "GOMP_SPINCOUNT") {
    instead =
        absl::StrCat("export KMP_BLOCKTIME=", value == "0" ? "0" : "infinite");
  } else if (name == "GOMP_CPU_AFFINITY") {
    const std::string places = PlacesOfCpus(value);
    if (!places.empty()) {
      instead =
          absl::StrCat("export OMP_PROC_BIND=true OMP_PLACES='", places, "'");
    }
  } else if (name == "GOMP_STACKSIZE") {
    instead = absl::StrCat("export OMP_STACKSIZE=", value);
  }
  return Unread{.why = absl::StrCat("the OpenMP runtime is that of ",
                                    *openmp.begin(), ", not GNU's"),
                .instead = instead};
}

}  // namespace

std::string GnuInsteadOfKmp(const std::string& name, const std::string& value) {
  std::string settings;
  for (const auto& [other, text] : base::TranslateKmp(name, value).variables) {
    const char* quote =
        text.find_first_of(" {}") == std::string::npos ? "" : "'";
    absl::StrAppend(&settings, " ", other, "=", quote, text, quote);
  }
  if (!settings.empty()) return absl::StrCat("export", settings);
  if (name == "KMP_ALL_THREADS" || name == "KMP_DEVICE_THREAD_LIMIT") {
    return absl::StrCat("export OMP_THREAD_LIMIT=", value);
  }
  return "";
}

std::optional<Unread> UnreadByOpenMp(const std::string& name,
                                     const std::string& value,
                                     const std::set<std::string>& families) {
  if (families.empty()) return std::nullopt;
  return absl::StartsWith(name, "KMP_") ? UnreadKmp(name, value, families)
                                        : UnreadGomp(name, value, families);
}

}  // namespace hvdlite::doctor

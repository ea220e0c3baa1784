#include "timeline/record/merged_file.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "timeline/record/trace_format.h"

namespace hvdlite::timeline {
namespace {

constexpr size_t kMergeWriteBytes = size_t{1} << 20;

bool IsInt64(const nlohmann::json& value) {
  constexpr auto kMax = std::numeric_limits<int64_t>::max();
  return value.is_number_integer() &&
         (!value.is_number_unsigned() ||
          value.get<uint64_t>() <= static_cast<uint64_t>(kMax));
}

// Reads microseconds as AppendMicroseconds() writes them. Returns false for
// other texts, and for times that do not fit.
bool ParseMicroseconds(absl::string_view text, int64_t* time_ns) {
  const absl::string_view sign = absl::ConsumePrefix(&text, "-") ? "-" : "";
  const size_t point = text.find('.');
  if (point == 0 || point == absl::string_view::npos ||
      text.size() != point + 4) {
    return false;
  }
  const std::string digits =
      absl::StrCat(text.substr(0, point), text.substr(point + 1));
  return std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(absl::StrCat(sign, digits), time_ns);
}

}  // namespace

absl::Status MergedFile::Add(absl::string_view event) {
  text_.append(is_first_ ? "[\n" : ",\n");
  is_first_ = false;
  text_.append(event.data(), event.size());
  if (text_.size() < kMergeWriteBytes) return absl::OkStatus();
  const absl::Status status = sink_->Append(text_);
  text_.clear();
  return status;
}

absl::Status MergedFile::Finish() {
  text_.append(is_first_ ? "[]\n" : "\n]\n");
  return sink_->Append(text_);
}

absl::Status MergedFile::AddMetadata(absl::string_view line,
                                     std::optional<int64_t>* clock_offset_ns) {
  nlohmann::json event =
      nlohmann::json::parse(line.begin(), line.end(), /*cb=*/nullptr,
                            /*allow_exceptions=*/false);
  if (!event.is_object()) return absl::DataLossError("damaged metadata");
  if (event["name"] != std::string(kTraceMetadata)) return Add(line);

  nlohmann::json& args = event["args"];
  if (!args.is_object() || !IsInt64(args["clock_offset_ns"])) {
    return absl::DataLossError("no clock offset in its metadata");
  }
  *clock_offset_ns = args["clock_offset_ns"].get<int64_t>();
  args["clock_offset_ns"] = 0;
  args["applied_clock_offset_ns"] = **clock_offset_ns;
  return Add(
      event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

absl::Status MergedFile::AddShifted(absl::string_view line,
                                    int64_t clock_offset_ns) {
  if (clock_offset_ns == 0) return Add(line);
  absl::string_view rest = line;
  absl::ConsumePrefix(&rest, kEventLinePrefix);
  const size_t comma = rest.find(',');
  int64_t start_ns = 0;
  if (comma == absl::string_view::npos ||
      !ParseMicroseconds(rest.substr(0, comma), &start_ns) ||
      __builtin_add_overflow(start_ns, clock_offset_ns, &start_ns)) {
    return absl::DataLossError("an event with a damaged time");
  }
  std::string shifted(kEventLinePrefix);
  AppendMicroseconds(start_ns, &shifted);
  absl::StrAppend(&shifted, rest.substr(comma));
  return Add(shifted);
}

}  // namespace hvdlite::timeline

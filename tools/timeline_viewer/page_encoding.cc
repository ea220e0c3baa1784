#include "tools/timeline_viewer/page_encoding.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>

namespace hvdlite::timeline_viewer {

using timeline::SliceDetails;
using timeline::Trace;
using timeline::TraceSlice;

void AppendVarint(uint64_t value, std::string* bytes) {
  while (value >= 0x80) {
    bytes->push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  bytes->push_back(static_cast<char>(value));
}

void AppendSigned(int64_t value, std::string* bytes) {
  const uint64_t sign = value < 0 ? ~uint64_t{0} : 0;
  AppendVarint((static_cast<uint64_t>(value) << 1) ^ sign, bytes);
}

void AppendSlices(const Trace& trace, const PageRow& row, int64_t origin_ns,
                  std::string* bytes) {
  AppendVarint(row.slices.size(), bytes);
  int64_t end_ns = origin_ns;
  for (const size_t index : row.slices) {
    const TraceSlice& slice = trace.slices[index];
    AppendSigned(slice.start_ns - end_ns, bytes);
    end_ns = slice.end_ns();
  }
  for (const size_t index : row.slices) {
    AppendVarint(static_cast<uint64_t>(trace.slices[index].duration_ns), bytes);
  }
  for (const size_t index : row.slices) {
    AppendVarint(trace.slices[index].name, bytes);
  }
  for (const size_t index : row.slices) {
    const TraceSlice& slice = trace.slices[index];
    const SliceDetails& details = trace.DetailsOf(slice);
    const std::array<int64_t, 8> fields = {
        details.batch,     details.tensors,     details.bytes,
        details.last_rank, details.lateness_us, details.picked_up_us,
        details.step,      details.text};
    constexpr size_t kPickedUp = 5;
    const auto flags_at = bytes->size();
    bytes->push_back(0);
    unsigned flags = 0;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (fields[i] == -1) continue;
      flags |= 1U << i;
      AppendSigned(i == kPickedUp ? fields[i] - slice.start_ns : fields[i],
                   bytes);
    }
    (*bytes)[flags_at] = static_cast<char>(flags);
  }
}

void AppendLevels(const PageRow& row, int64_t origin_ns, std::string* bytes) {
  AppendVarint(row.levels.size(), bytes);
  for (const std::vector<LevelNode>& level : row.levels) {
    AppendVarint(level.size(), bytes);
    int64_t end_ns = origin_ns;
    for (const LevelNode& node : level) {
      AppendSigned(node.start_ns - end_ns, bytes);
      AppendVarint(static_cast<uint64_t>(node.end_ns - node.start_ns), bytes);
      AppendVarint(static_cast<uint64_t>(node.busy_ns), bytes);
      AppendVarint(node.name, bytes);
      end_ns = node.end_ns;
    }
  }
}

void AppendChart(const PageChart& chart, int64_t origin_ns,
                 std::string* bytes) {
  for (const PageChart::Line& line : chart.lines) {
    AppendVarint(line.times_ns.size(), bytes);
    int64_t last_ns = origin_ns;
    for (const int64_t time_ns : line.times_ns) {
      AppendSigned(time_ns - last_ns, bytes);
      last_ns = time_ns;
    }
    for (const double value : line.values) {
      constexpr double kMost = std::numeric_limits<float>::max();
      const auto single = static_cast<float>(std::clamp(value, -kMost, kMost));
      uint32_t bits = 0;
      std::memcpy(&bits, &single, sizeof(bits));
      for (int shift = 0; shift < 32; shift += 8) {
        bytes->push_back(static_cast<char>((bits >> shift) & 0xff));
      }
    }
  }
}

std::string ScriptSafe(absl::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else if (c == '>') {
      safe += "\\u003e";
    } else if (c == '&') {
      safe += "\\u0026";
    } else {
      safe.push_back(c);
    }
  }
  return safe;
}

}  // namespace hvdlite::timeline_viewer

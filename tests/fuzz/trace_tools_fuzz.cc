// timeline_viewer repairs, merges and slices trace files, gzipped or not. For
// any content, it must end with an error that names the file, or write a valid
// file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_input.h"
#include "timeline/read/trace_event_parser.h"
#include "timeline/read/trace_file.h"
#include "timeline/read/trace_merge.h"
#include "timeline/read/trace_reader.h"
#include "timeline/report/report.h"
#include "tools/timeline_viewer/repair.h"
#include "tools/timeline_viewer/slice.h"

namespace hvdlite::fuzz {
namespace {

using timeline::Report;

bool IsDone(const absl::Status& status) {
  if (!status.ok()) FUZZ_CHECK(!status.message().empty());
  return status.ok();
}

// Checks that a written file is complete and contains events.
void CheckIsWhole(const std::string& path) {
  const auto read = timeline::ReadTraceText(path);
  FUZZ_CHECK(read.ok() && read->warning.empty());
  const timeline::ParseReport report = timeline::ParseTraceEvents(
      read->text, [](const timeline::ParsedEvent&) {});
  FUZZ_CHECK(report.last_event_end > 0 && report.damaged_places == 0);
  FUZZ_CHECK(!report.cut_off && (report.closed || report.head.empty()));
}

void Repair(const std::string& path, const std::string& out) {
  const auto repair = timeline_viewer::RepairTraceFile(path, out);
  if (!IsDone(repair.status())) return;
  FUZZ_CHECK(repair->events > 0);
  CheckIsWhole(out);
  const auto again = timeline_viewer::RepairTraceFile(out, out);
  FUZZ_CHECK(again.ok() && again->events == repair->events);
  FUZZ_CHECK(again->lost.empty());
}

void Slice(FuzzInput& input, const std::string& path, const std::string& out) {
  timeline_viewer::SliceOptions options;
  if (input.Bool()) {
    options.steps = {1 + input.Below(4), 1 + input.Below(8)};
  } else {
    options.from_ns = input.Below(100) * 1000;
    options.to_ns = input.Below(200) * 1000;
  }
  if (input.Bool()) options.ranks = {input.Below(3)};
  Report report;
  const absl::Status status =
      timeline_viewer::SliceTrace(path, options, out, &report);
  if (IsDone(status)) CheckIsWhole(out);
}

void Merge(FuzzInput& input, const std::string& path, const std::string& other,
           const std::string& out) {
  const auto merged = timeline::MergeTraces(
      {path, other}, out, {.force = input.Bool(), .keep = {}});
  if (!IsDone(merged.status())) return;
  CheckIsWhole(out);
  FUZZ_CHECK(merged->size() == 2);
}

// Writes the bytes unchanged, or gzipped and cut.
std::string WriteTrace(const FuzzDirectory& directory, FuzzInput& input,
                       std::string_view bytes) {
  const int form = input.Below(3);
  if (form < 2) return directory.Write("trace.json", bytes);
  const std::string path = directory / "trace.json.gz";
  const auto file = timeline::OutputFile::Open(path);
  FUZZ_CHECK(file.ok() && (*file)->Append({bytes.data(), bytes.size()}).ok() &&
             (*file)->Commit().ok());
  const size_t lost = static_cast<size_t>(input.Below(64));
  const auto size = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, size - std::min<size_t>(lost, size));
  return path;
}

void Run(FuzzInput input) {
  static const FuzzDirectory directory;
  const int kind = input.Below(3);
  // The bytes for choices come first, so that mutations do not move them.
  FuzzInput choices =
      FuzzInput(reinterpret_cast<const uint8_t*>(input.Bytes(8).data()), 8);
  const std::string out = directory / "out";
  const std::string_view second = kind == 0 ? input.Until('\0') : "";
  const std::string path = WriteTrace(directory, choices, input.Rest());
  switch (kind) {
    case 0:
      Merge(choices, path, directory.Write("other.json", second), out);
      break;
    case 1:
      Repair(path, choices.Bool() ? out : out + ".gz");
      break;
    default:
      Slice(choices, path, out);
  }
  directory.Clear();
}

}  // namespace
}  // namespace hvdlite::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 9) return 0;
  hvdlite::fuzz::Run(hvdlite::fuzz::FuzzInput(data, size));
  return 0;
}

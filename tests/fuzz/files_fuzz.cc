// Files that hvdlite reads: checkpoints and traces, merged or per rank. For
// other files, the error must name the file. A trace that is cut off or damaged
// must be read as far as possible, merged or refused.
#include <cstdint>
#include <string>

#include "base/checkpoint_file.h"
#include "tests/fuzz/fuzz_input.h"
#include "timeline/diagnose/findings.h"
#include "timeline/diagnose/step_analysis.h"
#include "timeline/diagnose/trace_summary.h"
#include "timeline/read/trace_reader.h"
#include "timeline/record/part_merge.h"
#include "timeline/record/trace_format.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::fuzz {
namespace {

// Checks that an error names the file.
template <typename Read>
bool IsRead(const Read& read, const std::string& path) {
  if (!read.ok()) {
    FUZZ_CHECK(std::string(read.status().message()).find(path) !=
               std::string::npos);
  }
  return read.ok();
}

void ReadAsCheckpoint(const std::string& path) {
  const auto content = base::ReadCheckpointFile(path);
  if (!IsRead(content, path)) return;
  // Content that was written as a checkpoint must be read unchanged.
  FUZZ_CHECK(base::WriteCheckpointFile(path, *content, false).ok());
  FUZZ_CHECK(base::ReadCheckpointFile(path).value() == *content);
}

void ReadAsTrace(const std::string& path) {
  const auto trace = timeline::ReadTrace(path);
  if (!trace.ok()) {
    FUZZ_CHECK(!trace.status().message().empty());
    return;
  }
  for (const timeline::TraceSlice& slice : trace->slices) {
    FUZZ_CHECK(slice.name < trace->names.size());
    FUZZ_CHECK(trace->processes.contains(slice.pid));
    FUZZ_CHECK(slice.duration_ns >= 0);
  }
  const timeline::TraceSummary summary = timeline::Summarize(*trace);
  FUZZ_CHECK(summary.totals.occurrences <=
             static_cast<int64_t>(trace->slices.size()));
  timeline::SummarizeByProcess(*trace);
  const timeline::StepAnalysis analysis = timeline::AnalyzeSteps(*trace);
  for (const timeline::RankStep& step : analysis.steps) {
    for (const int64_t part_ns : step.parts) FUZZ_CHECK(part_ns >= 0);
  }
  for (const timeline::Finding& finding :
       timeline::FindCauses(*trace, analysis)) {
    FUZZ_CHECK(finding.share > 0 && finding.share <= 1.01);
  }
  timeline::SharesOf(*trace);
}

void Run(FuzzInput input) {
  static const FuzzDirectory directory;
  const int kind = input.Below(4);
  if (kind == 0) {
    ReadAsCheckpoint(directory.Write("checkpoint", input.Rest()));
  } else if (kind == 1) {
    ReadAsTrace(directory.Write("trace.json", input.Rest()));
  } else {
    // Two per-rank files of a world of two ranks; one process was killed.
    const std::string path = directory / "parts.json";
    directory.Write("parts.json.rank00000", input.Until('\0'));
    directory.Write("parts.json.rank00001", input.Rest());
    ReadAsTrace(path);
    if (kind == 3 && timeline::MergeTraceParts(path, 2).ok()) ReadAsTrace(path);
  }
  directory.Clear();
}

}  // namespace
}  // namespace hvdlite::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvdlite::fuzz::Run(hvdlite::fuzz::FuzzInput(data, size));
  return 0;
}

// The data of the HTML page, as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/report/examined.h"
#include "tools/timeline_viewer/page_rows.h"

namespace hvdlite::timeline_viewer {

// The time from the first to the last slice or counter, on the trace's clock.
// Both values are 0 for an empty trace.
struct PageSpan {
  int64_t origin_ns = 0;
  int64_t length_ns = 0;
};
PageSpan SpanOf(const timeline::Trace& trace);

// The lateness of a rank in a step: the longest wait for ranks in the step
// minus its own, as a part of the step. Returns one value for each of the steps
// of `analysis`.
std::vector<double> LatenessOf(const timeline::StepAnalysis& analysis);

// The number of the steady step of median length on the lowest rank; 0 if there
// are no steps.
int64_t TypicalStep(const timeline::StepAnalysis& analysis);

// Returns JSON of the run, steps, findings, names, processes, tracks, rows and
// charts. Times are ns since the span's origin.
std::string PageFacts(const timeline::Examined& examined, const PageSpan& span,
                      const std::vector<PageRow>& rows,
                      const std::vector<PageChart>& charts);

// Returns JSON of the slices of `row` and of its levels, in columns: start,
// duration and name. Slices also have columns of their details if any slice has
// them: bucket, tensors, bytes, last_rank, lateness_us, picked_up_us, step,
// text
// (-1: missing).
std::string RowData(const timeline::Trace& trace, const PageRow& row,
                    int64_t origin_ns);

}  // namespace hvdlite::timeline_viewer

// What the HTML page says of a trace beside the slices themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/report/examined.h"
#include "tools/timeline_viewer/page_rows.h"

namespace hvdlite::timeline_viewer {

// From the first to the last of slices and counters, on the trace's clock. Both
// 0 if there is none.
struct PageSpan {
  int64_t origin_ns = 0;
  int64_t length_ns = 0;
};
PageSpan SpanOf(const timeline::Trace& trace);

// How late a rank was in a step: the longest wait for ranks in it less its own,
// as a share of its step; of all steps of `analysis`, in their order.
std::vector<double> LatenessOf(const timeline::StepAnalysis& analysis);

// The number of the step whose length is the median of the steady ones', on the
// lowest rank; 0 if there are no steps.
int64_t TypicalStep(const timeline::StepAnalysis& analysis);

// JSON: the run, steps, findings, names, processes, lanes, rows and charts;
// times in ns since the span's origin.
std::string PageFacts(const timeline::Examined& examined, const PageSpan& span,
                      const std::vector<PageRow>& rows,
                      const std::vector<PageChart>& charts);

// JSON of the slices of `row` and of its levels, in columns: start, duration
// and name; of slices also what they say, where any does (batch, tensors,
// bytes, last_rank, lateness_us, picked_up_us, step, text; -1: not said).
std::string RowData(const timeline::Trace& trace, const PageRow& row,
                    int64_t origin_ns);

}  // namespace hvdlite::timeline_viewer

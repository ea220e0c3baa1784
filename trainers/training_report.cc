#include "trainers/training_report.h"

#include <ATen/Parallel.h>
#include <hvdlite/hvdlite.h>

#include <algorithm>

#include "trainers/agreement.h"
#include "trainers/replicas.h"

namespace hvdlite::trainers {

Report MakeReport(const ReportSubject& subject, const StepRange& steps,
                  const IntervalMeter& meter, const std::vector<double>& losses,
                  const std::vector<Evaluation>& evaluations,
                  const torch::nn::Module& model) {
  return {.program = subject.program,
          .settings = subject.settings,
          .items = subject.items,
          .world_size = size(),
          .threads_per_rank = at::get_num_threads(),
          .first_step = steps.first,
          .steps = std::max<int64_t>(steps.last - steps.first, 0),
          .seconds = meter.seconds(),
          .items_per_second = SumOverRanks(meter.items_per_second()),
          .losses = losses,
          .evaluation = evaluations.empty() ? std::nullopt
                                            : std::optional(evaluations.back()),
          .accuracies = AccuraciesOf(evaluations),
          .parameter_digests = GatherParameterDigests(model)};
}

void SaveReport(const Report& report, const RunFlags& run) {
  OnAllRanks("save the report", [&] {
    if (rank() != 0) return;
    if (!run.report.empty()) WriteReport(run.report, report);
    if (!run.report_html.empty()) WriteHtmlReport(run.report_html, report);
  });
}

}  // namespace hvdlite::trainers

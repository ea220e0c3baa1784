// The report at the end of a training.
#pragma once

#include <string>
#include <vector>

#include "trainers/evaluation.h"
#include "trainers/interval_meter.h"
#include "trainers/report.h"
#include "trainers/run_flags.h"
#include "trainers/step_range.h"

namespace torch::nn {
class Module;
}

namespace hvdlite::trainers {

// What a report is about.
struct ReportSubject {
  std::string program;
  std::string settings;  // the flags, as JSON
  std::string items;     // what is trained on, in the plural
};

// Speeds are summed over the ranks; `losses` are of all ranks together already.
// Collective.
Report MakeReport(const ReportSubject& subject, const StepRange& steps,
                  const IntervalMeter& meter, const std::vector<double>& losses,
                  const std::vector<Evaluation>& evaluations,
                  const torch::nn::Module& model);

// Writes the report on rank 0 to --report and --report-html, if these are
// given. Throws on all ranks if that fails. Collective.
void SaveReport(const Report& report, const RunFlags& run);

}  // namespace hvdlite::trainers

#include "trainers/benchmark/throughput_lines.h"

#include "absl/strings/str_format.h"
#include "tools/support/sample_statistics.h"

namespace hvdlite::trainers {
namespace {

constexpr double kConfidence95 = 1.96;  // standard deviations, both ways

}  // namespace

StepSpeed StepSpeedOf(int64_t batch_size,
                      const std::vector<double>& step_seconds) {
  const auto images = static_cast<double>(batch_size);
  std::vector<double> speeds;
  for (const double seconds : step_seconds) speeds.push_back(images / seconds);
  return {
      .mean = images / StatisticsOf(step_seconds).avg,
      .uncertainty = StandardError(speeds),
      .jitter = Jitter(speeds),
  };
}

std::string StepHeader() { return "Step\tImg/sec\ttotal_loss"; }

std::string StepLine(int64_t step, const StepSpeed& speed, double loss) {
  return absl::StrFormat("%d\timages/sec: %.1f +/- %.1f (jitter = %.1f)\t%.3f",
                         step, speed.mean, speed.uncertainty, speed.jitter,
                         loss);
}

std::string TotalBlock(double images_per_second) {
  const std::string dashes(64, '-');
  return absl::StrFormat("%s\ntotal images/sec: %.2f\n%s", dashes,
                         images_per_second, dashes);
}

std::string IterationLine(int64_t iteration, double images_per_second) {
  return absl::StrFormat("Iter #%d: %.1f img/sec per CPU", iteration,
                         images_per_second);
}

std::string RankSpeedLine(const std::vector<double>& images_per_second) {
  const SampleStatistics speed = StatisticsOf(images_per_second);
  return absl::StrFormat("Img/sec per CPU: %.1f +-%.1f", speed.avg,
                         kConfidence95 * speed.sd);
}

std::string TotalSpeedLine(int ranks,
                           const std::vector<double>& images_per_second) {
  const SampleStatistics speed = StatisticsOf(images_per_second);
  return absl::StrFormat("Total img/sec on %d CPU(s): %.1f +-%.1f", ranks,
                         ranks * speed.avg, ranks * kConfidence95 * speed.sd);
}

}  // namespace hvdlite::trainers

// Throughput as tf_cnn_benchmarks and Horovod's synthetic benchmark print it,
// for tools that read their output. No line ends with a newline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hvdlite::trainers {

// Images a second over some steps.
struct StepSpeed {
  double mean = 0;         // batch size / mean time
  double uncertainty = 0;  // standard error of the steps' speeds
  double jitter = 0;       // of the steps' speeds
};

// Of at least one step (std::invalid_argument). `batch_size` is the number of
// images of a step on all ranks; the times are positive.
// tf_cnn_benchmarks/benchmark_cnn.py, get_perf_timing.
StepSpeed StepSpeedOf(int64_t batch_size,
                      const std::vector<double>& step_seconds);

// tf_cnn_benchmarks: the header of the steps' lines.
std::string StepHeader();

// tf_cnn_benchmarks: the line of a step, counted from 1; `speed` is that of the
// steps so far.
std::string StepLine(int64_t step, const StepSpeed& speed, double loss);

// tf_cnn_benchmarks: the last three lines, the speed between dashes.
std::string TotalBlock(double images_per_second);

// Horovod, examples/pytorch/pytorch_synthetic_benchmark.py: the line of an
// iteration, counted from 0, with the speed of one rank.
std::string IterationLine(int64_t iteration, double images_per_second);

// Horovod: the speed of one rank from that of its iterations, of which there is
// at least one (std::invalid_argument), +- 1.96 of their population's standard
// deviation.
std::string RankSpeedLine(const std::vector<double>& images_per_second);

// Horovod: RankSpeedLine's numbers times `ranks`.
std::string TotalSpeedLine(int ranks,
                           const std::vector<double>& images_per_second);

}  // namespace hvdlite::trainers

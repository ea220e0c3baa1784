#include "trainers/report.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "trainers/input_error.h"

namespace hvdlite::trainers {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    Flags, arch, zero_init_residual, memory_format, data_dir, synthetic,
    synthetic_images, image_size, classes, epochs, max_steps, batch_size,
    eval_every, lr, momentum, weight_decay, nesterov, warmup_epochs, lr_steps,
    lr_gamma, checkpoint, checkpoint_every, resume, seed, threads, log_interval,
    report, no_sync, barrier_only)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Statistics, mean, median, min, max)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Evaluation, loss, accuracy, images)

Statistics Summarise(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return {
      .mean = std::accumulate(values.begin(), values.end(), 0.0) /
              static_cast<double>(values.size()),
      .median = values.size() % 2 == 1
                    ? values[middle]
                    : (values[middle - 1] + values[middle]) / 2,
      .min = values.front(),
      .max = values.back(),
  };
}

std::string FormatDigest(int64_t digest) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(digest));
  return text;
}

void WriteReport(const std::string& file, const Report& report) {
  std::vector<std::string> digests;
  for (const int64_t digest : report.parameter_digests) {
    digests.push_back(FormatDigest(digest));
  }
  const bool identical = std::all_of(
      digests.begin(), digests.end(),
      [&](const std::string& digest) { return digest == digests.front(); });

  nlohmann::ordered_json json;
  json["program"] = "train_resnet50";
  json["settings"] = nlohmann::json(report.flags);
  json["world_size"] = report.world_size;
  json["steps"] = report.steps;
  json["seconds"] = report.seconds;
  json["images_per_second"] =
      nlohmann::json(Summarise(report.images_per_second));
  json["images_per_second"]["intervals"] = report.images_per_second;
  json["loss"] = {{"first", report.losses.empty() ? 0 : report.losses.front()},
                  {"last", report.losses.empty() ? 0 : report.losses.back()},
                  {"intervals", report.losses}};
  if (report.evaluation) {
    json["evaluation"] = nlohmann::json(*report.evaluation);
  }
  json["parameter_digests"] = digests;
  json["parameters_identical"] = identical;

  std::ofstream stream(file);
  stream << json.dump(2) << "\n";
  stream.close();
  if (!stream) {
    throw InputError("cannot write the report '" + file +
                     "': " + std::strerror(errno));
  }
}

}  // namespace hvdlite::trainers

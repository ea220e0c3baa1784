#include "tools/scale_sim/workload.h"

#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/descriptor.h"
#include "support/gradient_sizes.h"

namespace hvdlite::scale_sim {
namespace {

constexpr int64_t kBytesPerElement = 4;               // float32
constexpr int64_t kMostElements = 1'000'000'000'000;  // of a set

// Ready when their share of the work and all before it are done.
std::vector<double> ReadyFractions(const std::vector<double>& work) {
  const double total = std::accumulate(work.begin(), work.end(), 0.0);
  std::vector<double> fractions;
  double done = 0;
  for (const double part : work) {
    done += part;
    fractions.push_back(done / total);
  }
  fractions.back() = 1;
  return fractions;
}

absl::Status BadLine(int number, absl::string_view line) {
  return absl::InvalidArgumentError(absl::StrCat(
      "line ", number, ": '", line,
      "' must be a number of elements above 0, and optionally a work above 0; "
      "together there may be ",
      kMostElements, " elements and a work of 1e300"));
}

negotiation::Request Average(std::string name, int64_t elements) {
  negotiation::Request request;
  request.name = std::move(name);
  request.tensors = {{.shape = {elements}}};
  request.average = true;
  return request;
}

}  // namespace

int64_t GradientSet::total_bytes() const {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

GradientSet Resnet50GradientSet(int64_t classes) {
  GradientSet set;
  set.name = absl::StrCat("ResNet50 with ", classes, " classes");
  std::vector<double> work;
  for (const support::LayerGradient& gradient :
       support::Resnet50Gradients(classes)) {
    set.bytes.push_back(gradient.elements * kBytesPerElement);
    work.push_back(gradient.multiply_adds);
  }
  set.ready_fraction = ReadyFractions(work);
  return set;
}

absl::StatusOr<GradientSet> ParseGradientSet(absl::string_view text) {
  GradientSet set;
  std::vector<double> work;
  int64_t elements_left = kMostElements;
  double work_left = 1e300;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view content = line.substr(0, line.find('#'));
    const std::vector<absl::string_view> fields =
        absl::StrSplit(content, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (fields.empty()) continue;
    int64_t elements = 0;
    double part = 1;
    if (fields.size() > 2 || !absl::SimpleAtoi(fields[0], &elements) ||
        elements <= 0 || elements > elements_left ||
        (fields.size() == 2 && !absl::SimpleAtod(fields[1], &part)) ||
        !(part > 0) || !(part <= work_left)) {
      return BadLine(number, line);
    }
    elements_left -= elements;
    work_left -= part;
    set.bytes.push_back(elements * kBytesPerElement);
    work.push_back(part);
  }
  if (work.empty()) {
    return absl::InvalidArgumentError(
        "has no gradients; write one line with its elements for each");
  }
  set.ready_fraction = ReadyFractions(work);
  return set;
}

absl::StatusOr<GradientSet> GradientSetNamed(const std::string& name) {
  if (name == "resnet50-cifar10") return Resnet50GradientSet(10);
  if (name == "resnet50-imagenet") return Resnet50GradientSet(1000);
  const absl::StatusOr<std::string> text = base::ReadFile(name);
  if (!text.ok()) {
    return absl::NotFoundError(absl::StrCat(
        name,
        ": no such set of gradients, nor a file that can be read; the "
        "built-in sets are resnet50-cifar10 and resnet50-imagenet"));
  }
  absl::StatusOr<GradientSet> set = ParseGradientSet(*text);
  if (!set.ok()) {
    return absl::Status(set.status().code(),
                        absl::StrCat(name, ": ", set.status().message()));
  }
  set->name = name;
  return set;
}

Workload OneTensor() {
  return {
      .name = "one", .requests = {Average("tensor", 1)}, .ready_fraction = {1}};
}

Workload Training(int tensors) {
  Workload workload;
  workload.name = "training";
  const std::vector<int64_t> elements = support::Resnet50GradientElements();
  for (int i = 0; i < tensors; ++i) {
    workload.requests.push_back(
        Average(absl::StrCat("gradient.layer", i, ".weight"), elements.at(i)));
    workload.ready_fraction.push_back((i + 1.0) / tensors);
  }
  return workload;
}

Workload TrainingWith(const GradientSet& gradients) {
  Workload workload;
  workload.name = gradients.name;
  for (size_t i = 0; i < gradients.bytes.size(); ++i) {
    workload.requests.push_back(
        Average(absl::StrCat("gradient.layer", i, ".weight"),
                gradients.bytes[i] / static_cast<int64_t>(sizeof(float))));
  }
  workload.ready_fraction = gradients.ready_fraction;
  return workload;
}

}  // namespace hvdlite::scale_sim

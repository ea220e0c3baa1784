#include "tools/scale_sim/workload.h"

#include <cstddef>
#include <cstdint>
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

constexpr int64_t kMostElements = 1'000'000'000'000;  // sum of all gradients

// A gradient is ready when its part of the work, and all work before, is done.
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
      "' must be a number of elements above 0 and, optionally, a work above 0; "
      "the limits of their sums are ",
      kMostElements, " elements and a work of 1e300"));
}

negotiation::Request Average(std::string name, int64_t elements) {
  negotiation::Request request;
  request.name = std::move(name);
  request.tensors = {{.shape = {elements}}};
  request.average = true;
  return request;
}

void AddGradient(int64_t elements, Workload& workload) {
  workload.requests.push_back(Average(
      absl::StrCat("gradient.layer", workload.requests.size(), ".weight"),
      elements));
}

}  // namespace

Workload OneTensor() {
  return {
      .name = "one", .requests = {Average("tensor", 1)}, .ready_fraction = {1}};
}

Workload Training(int tensors) {
  Workload workload;
  workload.name = "training";
  const std::vector<int64_t> elements = support::Resnet50GradientElements();
  for (int i = 0; i < tensors; ++i) {
    AddGradient(elements.at(i), workload);
    workload.ready_fraction.push_back((i + 1.0) / tensors);
  }
  return workload;
}

absl::StatusOr<Workload> ParseGradients(absl::string_view text) {
  Workload workload;
  workload.name = "training";
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
    AddGradient(elements, workload);
    work.push_back(part);
  }
  if (work.empty()) {
    return absl::InvalidArgumentError(
        "has no gradients; write one line per gradient, with its number of "
        "elements");
  }
  workload.ready_fraction = ReadyFractions(work);
  return workload;
}

absl::StatusOr<Workload> ReadGradients(const std::string& path) {
  const absl::StatusOr<std::string> text = base::ReadFile(path);
  if (!text.ok()) {
    return absl::NotFoundError(absl::StrCat(
        path, ": cannot be read; use a file with one line per gradient"));
  }
  absl::StatusOr<Workload> workload = ParseGradients(*text);
  if (workload.ok()) return workload;
  return absl::Status(workload.status().code(),
                      absl::StrCat(path, ": ", workload.status().message()));
}

}  // namespace hvdlite::scale_sim

#include <ATen/Parallel.h>
#include <hvdlite/run_report.h>
#include <hvdlite/world.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/environment.h"
#include "timeline/record/trace_format.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {
namespace {

bool IsSpeed(double value) { return std::isfinite(value) && value > 0; }

absl::Status Check(const RunReport& report) {
  const bool is_name =
      !report.items.empty() && absl::c_all_of(report.items, [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
      });
  if (!is_name) {
    return absl::InvalidArgumentError(
        absl::StrCat("run report: items '", report.items,
                     "' must consist of letters, digits and '_', for example "
                     "images"));
  }
  if (!IsSpeed(report.items_per_second) ||
      !absl::c_all_of(report.intervals, IsSpeed)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "run report: ", report.items, "_per_second must be above 0, but is ",
        report.items_per_second,
        report.intervals.empty()
            ? ""
            : absl::StrCat("; in intervals: ",
                           absl::StrJoin(report.intervals, ", "))));
  }
  if (report.threads_per_rank < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "run report: threads_per_rank is negative: ", report.threads_per_rank));
  }
  return absl::OkStatus();
}

// Uses enough digits to give the same number back.
std::string Number(double value) { return absl::StrFormat("%.17g", value); }

// Describes the machine as the reports of the trainers do.
std::string Machine() {
  std::string json = "{\"host\": ";
  timeline::AppendJsonString(base::HostName(), &json);
  const std::string build = build_info();
  for (const absl::string_view line : absl::StrSplit(build, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    for (const absl::string_view name : {"hvdlite", "LibTorch", "MPI", "UCX"}) {
      if (parts.first != name) continue;
      absl::StrAppend(&json, ", \"", name, "\": ");
      timeline::AppendJsonString(parts.second, &json);
    }
  }
  return json + "}";
}

std::string Json(const RunReport& report) {
  std::string speed = Number(report.items_per_second);
  if (!report.intervals.empty()) {
    speed = absl::StrCat("{\"mean\": ", speed, ", \"intervals\": [",
                         absl::StrJoin(report.intervals, ", ",
                                       [](std::string* out, double value) {
                                         absl::StrAppend(out, Number(value));
                                       }),
                         "]}");
  }
  const int threads = report.threads_per_rank > 0 ? report.threads_per_rank
                                                  : at::get_num_threads();
  return absl::StrCat("{\"world_size\": ", size(),
                      ", \"threads_per_rank\": ", threads, ", \"", report.items,
                      "_per_second\": ", speed, ", \"machine\": ", Machine(),
                      "}\n");
}

absl::Status Write(const std::string& path, const std::string& text) {
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  errno = 0;
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  if (file && std::rename(temporary.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  const int error = errno;
  unlink(temporary.c_str());
  return absl::InternalError(absl::StrCat("cannot write the run report '", path,
                                          "': ", std::strerror(error)));
}

}  // namespace

void write_run_report(const std::string& path, const RunReport& report) {
  internal::ThrowIfError(Check(report));
  if (rank() != 0) return;
  internal::ThrowIfError(Write(path, Json(report)));
}

}  // namespace hvdlite

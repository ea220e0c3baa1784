#include "trainers/benchmark/run_reports.h"

#include <algorithm>
#include <cmath>

#include "tools/support/input_error.h"
#include "trainers/benchmark/json_file.h"

namespace hvdlite::trainers {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kExpected[] = "a list of benchmark reports";

std::vector<fs::path> ListFiles(const fs::path& folder) {
  std::vector<fs::path> files;
  try {
    for (const fs::directory_entry& entry :
         fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
  } catch (const fs::filesystem_error& error) {
    throw InputError("cannot read the run's folder '" + folder.string() +
                     "': " + error.code().message());
  }
  if (files.empty()) {
    throw InputError("no *.json in '" + folder.string() +
                     "'; expected the reports of one run");
  }
  std::sort(files.begin(), files.end());
  return files;
}

// One report of a file, with errors that tell which.
class ReportReader {
 public:
  ReportReader(const fs::path& file, size_t index, const json& report)
      : where_("report " + std::to_string(index) + " of '" + file.string() +
               "'"),
        report_(report) {}

  std::string Text(const std::string& key) const {
    const auto value = report_.find(key);
    if (value == report_.end() || !value->is_string()) {
      throw InputError(where_ + " has no " + key + "; expected a text");
    }
    return *value;
  }

  // Empty if the benchmark did not fail.
  std::string Failure() const {
    if (!report_.value("completed", json(true)).is_boolean()) {
      throw InputError(where_ +
                       " has completed = " + report_["completed"].dump() +
                       "; expected true or false");
    }
    if (!report_.value("completed", true)) {
      return report_.contains("failure") ? Text("failure")
                                         : "it did not complete";
    }
    const json losses = report_.value("batch_loss", json::array());
    const bool finite = std::all_of(losses.begin(), losses.end(),
                                    [](const json& l) { return !l.is_null(); });
    return finite ? "" : "a loss is not finite";
  }

  double ItemsPerSecond() const {
    static const json::json_pointer avg("/train_item/avg");
    const json found =
        report_.contains(avg) ? report_.at(avg) : json("nothing");
    if (!found.is_number() || found <= 0) {
      throw InputError(where_ + " has " + found.dump() +
                       " as train_item.avg; expected a positive number of "
                       "items a second");
    }
    return found;
  }

 private:
  const std::string where_;
  const json& report_;
};

RunReport ReadReport(const fs::path& file, size_t index, const json& value) {
  if (!value.is_object()) {
    throw InputError("report " + std::to_string(index) + " of '" +
                     file.string() + "' is JSON of type " + value.type_name() +
                     "; expected an object");
  }
  const ReportReader reader(file, index, value);
  RunReport report = {.file = file,
                      .name = reader.Text("name"),
                      .unique_id = reader.Text("unique_id"),
                      .version = reader.Text("version"),
                      .failure = reader.Failure()};
  if (report.failure.empty()) report.items_per_second = reader.ItemsPerSecond();
  return report;
}

}  // namespace

RunReports ReadRunReports(const fs::path& folder) {
  RunReports reports;
  for (const fs::path& file : ListFiles(folder)) {
    const json list = ReadJsonFile(file, kExpected);
    if (!list.is_array()) {
      throw InputError("'" + file.string() + "' holds JSON of type " +
                       list.type_name() + "; expected " + kExpected);
    }
    for (size_t i = 0; i < list.size(); ++i) {
      reports.push_back(ReadReport(file, i, list[i]));
    }
  }
  return reports;
}

}  // namespace hvdlite::trainers

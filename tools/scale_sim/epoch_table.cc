#include "tools/scale_sim/epoch_table.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/descriptor.h"
#include "support/input_error.h"

namespace hvdlite::scale_sim {
namespace {

absl::Status CheckPositive(const std::string& name, double value) {
  if (value > 0 && std::isfinite(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be above 0, but is ", value));
}

// Throws InputError where it is none that an int holds.
int WholeNumber(const nlohmann::json& value, const std::string& name) {
  const bool is_whole = value.is_number_integer();
  if (!is_whole || value < std::numeric_limits<int>::min() ||
      value > std::numeric_limits<int>::max()) {
    throw support::InputError(absl::StrCat(
        name, " is ", value.dump(), ", and must be a whole number up to ",
        std::numeric_limits<int>::max()));
  }
  return value.get<int>();
}

absl::Status CheckNodes(const std::vector<int>& nodes) {
  if (nodes.empty()) {
    return absl::InvalidArgumentError(
        "nodes is empty; name the numbers of nodes of the rows");
  }
  int last = 0;
  for (const int number : nodes) {
    if (number <= last) {
      return absl::InvalidArgumentError(absl::StrCat(
          "nodes must be above 0 and ascend, but ", number, " follows ", last));
    }
    last = number;
  }
  return absl::OkStatus();
}

absl::Status CheckColumn(const EpochTable& table, const EpochColumn& column) {
  const std::string where = absl::StrCat("column '", column.name, "': ");
  if (column.epoch_seconds.size() != table.nodes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, "epoch_seconds has ", column.epoch_seconds.size(),
                     " entries, but nodes has ", table.nodes.size()));
  }
  absl::Status status =
      CheckPositive(where + "ranks_per_node", column.ranks_per_node);
  for (const double seconds : column.epoch_seconds) {
    status.Update(CheckPositive(where + "epoch_seconds", seconds));
  }
  return status;
}

absl::Status Check(const EpochTable& table) {
  absl::Status status = CheckPositive("images", table.images);
  status.Update(CheckPositive("batch_per_rank", table.batch_per_rank));
  status.Update(CheckPositive("cores_per_node", table.cores_per_node));
  status.Update(CheckNodes(table.nodes));
  if (table.columns.empty()) {
    status.Update(absl::InvalidArgumentError("columns is empty"));
  }
  std::set<std::string> names;
  for (const EpochColumn& column : table.columns) {
    status.Update(CheckColumn(table, column));
    if (!names.insert(column.name).second) {
      status.Update(absl::InvalidArgumentError(
          absl::StrCat("two columns are called '", column.name, "'")));
    }
  }
  return status;
}

// Throws InputError that names all keys that `object`, which `where` is about,
// lacks.
void RequireKeys(const nlohmann::json& object, const std::string& where,
                 const std::vector<std::string>& keys) {
  if (!object.is_object()) {
    throw support::InputError(absl::StrCat(where, " must be an object with ",
                                           absl::StrJoin(keys, ", ")));
  }
  std::vector<std::string> missing;
  for (const std::string& key : keys) {
    if (!object.contains(key)) missing.push_back(key);
  }
  if (missing.empty()) return;
  throw support::InputError(absl::StrCat(
      where, " lacks ", absl::StrJoin(missing, ", "), "; it must have ",
      absl::StrJoin(keys, ", "),
      ", as tools/scale_sim/tables/a64fx_resnet50_cifar10.json has"));
}

// Throws InputError, which begins with `where`, if `object`'s `key` is not of
// that `kind`.
template <typename Value>
void Get(const nlohmann::json& object, const std::string& where,
         const char* key, const char* kind, Value& value) {
  try {
    object.at(key).get_to(value);
  } catch (const nlohmann::json::type_error&) {
    throw support::InputError(absl::StrCat(where, key, " must be ", kind,
                                           ", but is ", object.at(key).dump()));
  }
}

}  // namespace

absl::StatusOr<EpochTable> ParseEpochTable(absl::string_view json) {
  EpochTable table;
  try {
    const nlohmann::json document =
        nlohmann::json::parse(json.begin(), json.end());
    RequireKeys(document, "the table",
                {"source", "images", "batch_per_rank", "cores_per_node",
                 "nodes", "columns"});
    Get(document, "", "source", "text", table.source);
    table.images = WholeNumber(document.at("images"), "images");
    table.batch_per_rank =
        WholeNumber(document.at("batch_per_rank"), "batch_per_rank");
    table.cores_per_node =
        WholeNumber(document.at("cores_per_node"), "cores_per_node");
    for (const nlohmann::json& number : document.at("nodes")) {
      table.nodes.push_back(WholeNumber(number, "nodes"));
    }
    for (const nlohmann::json& entry : document.at("columns")) {
      EpochColumn column;
      RequireKeys(entry, absl::StrCat("column ", table.columns.size() + 1),
                  {"name", "ranks_per_node", "epoch_seconds"});
      const std::string where =
          absl::StrCat("column ", table.columns.size() + 1, ": ");
      Get(entry, where, "name", "text", column.name);
      column.ranks_per_node =
          WholeNumber(entry.at("ranks_per_node"), "ranks_per_node");
      Get(entry, where, "epoch_seconds", "numbers", column.epoch_seconds);
      table.columns.push_back(std::move(column));
    }
  } catch (const nlohmann::json::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("is no JSON; a table of epoch times looks like "
                     "tools/scale_sim/tables/a64fx_resnet50_cifar10.json (",
                     error.what(), ")"));
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(error.what());
  } catch (const support::InputError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  if (const absl::Status status = Check(table); !status.ok()) return status;
  return table;
}

absl::StatusOr<EpochTable> ReadEpochTable(const std::string& path) {
  const absl::StatusOr<std::string> text = base::ReadFile(path);
  if (!text.ok()) {
    return absl::NotFoundError(
        absl::StrCat(path,
                     ": cannot be read; name a file such as "
                     "tools/scale_sim/tables/a64fx_resnet50_cifar10.json"));
  }
  absl::StatusOr<EpochTable> table = ParseEpochTable(*text);
  if (table.ok()) return table;
  return absl::Status(table.status().code(),
                      absl::StrCat(path, ": ", table.status().message()));
}

}  // namespace hvdlite::scale_sim

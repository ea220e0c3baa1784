#include "tools/scaling_sweep/run/sample.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace hvdlite::scaling_sweep {
namespace {

using Json = nlohmann::ordered_json;

// The text in a field, whatever bytes it has.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string ToJsonLine(const Sample& sample) {
  Json json = {{"configuration", sample.configuration},
               {"repeat", sample.repeat},
               {"nodes", sample.nodes},
               {"ranks", sample.ranks},
               {"threads", sample.threads},
               {"mapping", sample.mapping},
               {"setting", sample.setting},
               {"oversubscribed", sample.oversubscribed},
               {"threads_used", sample.threads_used},
               {"items_per_second", nullptr},
               {"exit_code", sample.exit_code},
               {"failure", sample.failure},
               {"start_time", sample.start_time},
               {"seconds", sample.seconds},
               {"host", sample.host},
               {"cores", sample.cores},
               {"command", sample.command},
               {"environment", sample.environment},
               {"report", sample.report},
               {"trace", sample.trace},
               {"log", sample.log}};
  if (sample.items_per_second) {
    json["items_per_second"] = *sample.items_per_second;
  }
  return Dump(json);
}

absl::StatusOr<Sample> ParseSample(const std::string& line) {
  try {
    const Json json = Json::parse(line);
    Sample sample;
    json.at("configuration").get_to(sample.configuration);
    json.at("repeat").get_to(sample.repeat);
    json.at("nodes").get_to(sample.nodes);
    json.at("ranks").get_to(sample.ranks);
    json.at("threads").get_to(sample.threads);
    json.at("mapping").get_to(sample.mapping);
    json.at("setting").get_to(sample.setting);
    json.at("oversubscribed").get_to(sample.oversubscribed);
    sample.threads_used = json.value("threads_used", 0);
    if (!json.at("items_per_second").is_null()) {
      sample.items_per_second = json.at("items_per_second").get<double>();
    }
    json.at("exit_code").get_to(sample.exit_code);
    json.at("failure").get_to(sample.failure);
    json.at("start_time").get_to(sample.start_time);
    json.at("seconds").get_to(sample.seconds);
    json.at("host").get_to(sample.host);
    json.at("cores").get_to(sample.cores);
    json.at("command").get_to(sample.command);
    json.at("environment").get_to(sample.environment);
    json.at("report").get_to(sample.report);
    json.at("trace").get_to(sample.trace);
    json.at("log").get_to(sample.log);
    return sample;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("is no sample: ", error.what()));
  }
}

}  // namespace hvdlite::scaling_sweep

#include "tools/scaling_sweep/run/command.h"

#include <cstdint>
#include <filesystem>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tools/scaling_sweep/run/spec.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr char kTraceName[] = "trace.json";

bool WritesItsOwnTrace(const Spec& spec, const Configuration& configuration) {
  std::vector<std::string> texts(spec.command().begin(), spec.command().end());
  for (const auto* more :
       {&configuration.arguments, &configuration.launcher_flags}) {
    texts.insert(texts.end(), more->begin(), more->end());
  }
  for (const auto& [name, value] : configuration.environment) {
    texts.push_back(value);
  }
  return absl::StrContains(absl::StrJoin(texts, " "), "{trace}");
}

std::map<std::string, std::string> ValuesFor(const Configuration& configuration,
                                             const RunFiles& files) {
  const std::string unrecorded =
      (std::filesystem::path(files.report).parent_path() / kTraceName).string();
  return {{"report", files.report},
          {"trace", files.trace.empty() ? unrecorded : files.trace},
          {"ranks", absl::StrCat(configuration.ranks())},
          {"nodes", absl::StrCat(configuration.nodes)},
          {"ranks_per_node", absl::StrCat(configuration.ranks_per_node)},
          {"threads", absl::StrCat(configuration.threads)},
          {"batch", absl::StrCat(configuration.batch)}};
}

std::string Hosts(const Spec& spec, const Configuration& configuration) {
  std::vector<std::string> hosts;
  for (int node = 0; node < configuration.nodes; ++node) {
    hosts.push_back(
        absl::StrCat(spec.host(node), ":", configuration.ranks_per_node));
  }
  return absl::StrJoin(hosts, ",");
}

void Append(std::vector<std::string>& arguments,
            const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
}

std::string ShellArgument(const std::string& argument) {
  constexpr char kPlain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "_-+=:,./@%";
  if (!argument.empty() &&
      argument.find_first_not_of(kPlain) == std::string::npos) {
    return argument;
  }
  return absl::StrCat("'", absl::StrReplaceAll(argument, {{"'", R"('\'')"}}),
                      "'");
}

bool RecordsTrace(const Spec& spec, int repeat) {
  switch (spec.traces()) {
    case FIRST_REPEAT:
      return repeat == 0;
    case NONE:
      return false;
    default:
      return true;
  }
}

}  // namespace

std::string DirectoryOf(const Configuration& configuration) {
  const std::string key = Key(configuration);
  uint32_t hash = 2166136261;  // FNV-1a
  for (const char c : key) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  }
  std::string name =
      absl::StrCat(configuration.nodes, "x", configuration.ranks_per_node, "x",
                   configuration.threads, "-", configuration.mapping, "-",
                   configuration.setting.substr(0, 40));
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-') {
      c = '_';
    }
  }
  return absl::StrFormat("runs/%s-%08x", name, hash);
}

RunFiles FilesIn(const std::string& directory, const Spec& spec, int repeat) {
  const std::filesystem::path path = directory;
  return {
      .report = (path / "report.json").string(),
      .trace = RecordsTrace(spec, repeat) ? (path / kTraceName).string() : "",
      .log = (path / "output.log").string()};
}

Configuration FilledIn(const Configuration& configuration,
                       const RunFiles& files) {
  const auto values = ValuesFor(configuration, files);
  Configuration filled = configuration;
  for (std::string& argument : filled.arguments)
    argument = FillIn(argument, values);
  for (std::string& argument : filled.launcher_flags)
    argument = FillIn(argument, values);
  for (auto& [name, value] : filled.environment) value = FillIn(value, values);
  return filled;
}

std::vector<std::string> LauncherWords(const Spec& spec,
                                       const Configuration& configuration,
                                       const std::string& launcher,
                                       bool oversubscribed,
                                       const RunFiles& files) {
  const Configuration filled = FilledIn(configuration, files);
  std::vector<std::string> arguments = {launcher, "-np",
                                        absl::StrCat(configuration.ranks())};
  if (spec.host_size() > 0)
    Append(arguments, {"-H", Hosts(spec, configuration)});
  if (!configuration.mapping.empty()) {
    Append(arguments, {"--map", configuration.mapping});
  }
  if (configuration.threads > 0) {
    Append(arguments, {"--threads", absl::StrCat(configuration.threads)});
  }
  if (oversubscribed) arguments.push_back("--oversubscribe");
  for (const auto& [name, value] : filled.environment) {
    Append(arguments, {"--set", absl::StrCat(name, "=", value)});
  }
  Append(arguments, filled.launcher_flags);
  return arguments;
}

std::vector<std::string> ProgramArguments(const Spec& spec,
                                          const Configuration& configuration,
                                          const RunFiles& files) {
  const auto values = ValuesFor(configuration, files);
  std::vector<std::string> arguments;
  if (!configuration.unset.empty()) arguments.emplace_back("env");
  for (const std::string& name : configuration.unset) {
    Append(arguments, {"-u", name});
  }
  for (const std::string& argument : spec.command()) {
    arguments.push_back(FillIn(argument, values));
  }
  for (const std::string& argument : configuration.arguments) {
    arguments.push_back(FillIn(argument, values));
  }
  return arguments;
}

Command BuildCommand(const Spec& spec, const Configuration& configuration,
                     const RunFiles& files, const std::string& launcher,
                     bool oversubscribed) {
  const bool record =
      !files.trace.empty() && !WritesItsOwnTrace(spec, configuration);
  Command command;
  if (configuration.alone) {
    command.environment = FilledIn(configuration, files).environment;
    if (configuration.threads > 0) {
      command.environment.emplace_back("OMP_NUM_THREADS",
                                       absl::StrCat(configuration.threads));
    }
    if (record) {
      command.environment.emplace_back("HVDLITE_TIMELINE", files.trace);
    }
  } else {
    command.arguments =
        LauncherWords(spec, configuration, launcher, oversubscribed, files);
    if (record) Append(command.arguments, {"--timeline", files.trace});
  }
  Append(command.arguments, ProgramArguments(spec, configuration, files));
  return command;
}

std::string ShellText(const std::vector<std::string>& arguments) {
  return absl::StrJoin(arguments, " ",
                       [](std::string* out, const auto& argument) {
                         absl::StrAppend(out, ShellArgument(argument));
                       });
}

}  // namespace hvdlite::scaling_sweep

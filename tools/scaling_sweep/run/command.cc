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

void Append(std::vector<std::string>& words,
            const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

std::string ShellWord(const std::string& word) {
  constexpr char kPlain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "_-+=:,./@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
    return word;
  }
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", R"('\'')"}}), "'");
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

std::string FolderOf(const Configuration& configuration) {
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

RunFiles FilesIn(const std::string& folder, const Spec& spec, int repeat) {
  const std::filesystem::path path = folder;
  return {
      .report = (path / "report.json").string(),
      .trace = RecordsTrace(spec, repeat) ? (path / kTraceName).string() : "",
      .log = (path / "output.log").string()};
}

Configuration FilledIn(const Configuration& configuration,
                       const RunFiles& files) {
  const auto values = ValuesFor(configuration, files);
  Configuration filled = configuration;
  for (std::string& word : filled.arguments) word = FillIn(word, values);
  for (std::string& word : filled.launcher_flags) word = FillIn(word, values);
  for (auto& [name, value] : filled.environment) value = FillIn(value, values);
  return filled;
}

std::vector<std::string> LauncherWords(const Spec& spec,
                                       const Configuration& configuration,
                                       const std::string& launcher,
                                       bool oversubscribed,
                                       const RunFiles& files) {
  const Configuration filled = FilledIn(configuration, files);
  std::vector<std::string> words = {launcher, "-np",
                                    absl::StrCat(configuration.ranks())};
  if (spec.host_size() > 0) Append(words, {"-H", Hosts(spec, configuration)});
  if (!configuration.mapping.empty()) {
    Append(words, {"--map", configuration.mapping});
  }
  if (configuration.threads > 0) {
    Append(words, {"--threads", absl::StrCat(configuration.threads)});
  }
  if (oversubscribed) words.push_back("--oversubscribe");
  for (const auto& [name, value] : filled.environment) {
    Append(words, {"--set", absl::StrCat(name, "=", value)});
  }
  Append(words, filled.launcher_flags);
  return words;
}

std::vector<std::string> ProgramWords(const Spec& spec,
                                      const Configuration& configuration,
                                      const RunFiles& files) {
  const auto values = ValuesFor(configuration, files);
  std::vector<std::string> words;
  if (!configuration.unset.empty()) words.emplace_back("env");
  for (const std::string& name : configuration.unset) {
    Append(words, {"-u", name});
  }
  for (const std::string& word : spec.command()) {
    words.push_back(FillIn(word, values));
  }
  for (const std::string& word : configuration.arguments) {
    words.push_back(FillIn(word, values));
  }
  return words;
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
    command.words =
        LauncherWords(spec, configuration, launcher, oversubscribed, files);
    if (record) Append(command.words, {"--timeline", files.trace});
  }
  Append(command.words, ProgramWords(spec, configuration, files));
  return command;
}

std::string ShellText(const std::vector<std::string>& words) {
  return absl::StrJoin(words, " ", [](std::string* out, const auto& word) {
    absl::StrAppend(out, ShellWord(word));
  });
}

}  // namespace hvdlite::scaling_sweep

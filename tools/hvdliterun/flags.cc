#include "tools/hvdliterun/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/flag_checks.h"
#include "base/status_macros.h"
#include "tools/hvdliterun/presets.h"
#include "torch_plugin/config_loader.h"

namespace hvdlite::launch {
namespace {

constexpr char kDescription[] =
    "hvdliterun [options] PROGRAM [argument ...]\n\nStarts PROGRAM on many "
    "ranks by this machine's mpirun, mpiexec or srun: "
    "each rank bound to its cores and memory, its environment set for the "
    "OpenMP runtime, BLAS and malloc that it uses. What you have set yourself "
    "wins. docs/hvdliterun.md tells more.";

// Of the flags whose values are looked at after parsing.
struct Texts {
  std::string map;
  std::string comm_core;
  std::string memory;
  std::string allocator = "default";
  std::vector<std::string> settings;
  std::vector<std::string> launcher_arguments;
  std::map<std::string, std::string> knobs;  // by the option's name
};

std::string FlagOf(const ConfigOption& option) {
  return absl::StrCat("--", absl::StrReplaceAll(option.name, {{"_", "-"}}));
}

// What --comm-core sets is no flag of its own.
bool IsFlag(const ConfigOption& option) {
  return option.name != "coordinator_core";
}

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const Preset& preset : Presets()) names.push_back(preset.name);
  return names;
}

std::string PresetHelp() {
  return absl::StrCat(
      "Settings of published studies: ",
      absl::StrJoin(Presets(), "; ", [](std::string* out, const Preset& p) {
        absl::StrAppend(out, p.name, ": ", p.help);
      }));
}

void AddRankFlags(CLI::App& app, Flags& flags, Texts& texts) {
  app.add_option("-n,--np", flags.ranks,
                 "Ranks (-np N, too); all slots of the allocation if left out")
      ->check(base::Positive());
  auto* hosts = app.add_option("-H,--host", flags.host_list,
                               "Hosts and their slots: h1:4,h2:4");
  app.add_option("--hostfile", flags.hostfile,
                 "File with lines 'host slots=4' or 'host:4'")
      ->excludes(hosts);
  app.add_option("--map", texts.map,
                 "What ranks get a share of: the node (default; its cores are "
                 "dealt evenly), a socket, a NUMA node or a core each")
      ->check(CLI::IsMember({"node", "socket", "numa", "core"}));
  app.add_option("--threads", flags.threads,
                 "Threads a rank; default: its cores less the coordinator's")
      ->check(base::Positive());
  app.add_option("--comm-core", texts.comm_core,
                 absl::StrCat("Core of the coordinator: none, auto (the last "
                              "one of a rank with ",
                              kCoresForACommCore,
                              " cores or more, or one that --threads leaves), "
                              "or a core of the rank, from 0"));
  app.add_option("--mem", texts.memory,
                 "Memory: local (of the node that touches it first), "
                 "interleave (page by page from all), bind (the rank's nodes)")
      ->check(CLI::IsMember({"local", "interleave", "bind"}));
  app.add_option("--alloc", texts.allocator, "malloc of the ranks")
      ->check(CLI::IsMember({"default", "jemalloc", "tcmalloc"}))
      ->capture_default_str();
  app.add_flag("--huge-pages", flags.huge_pages,
               "Heaps of transparent huge pages");
  app.add_option("--preset", flags.preset, PresetHelp())
      ->check(CLI::IsMember(PresetNames()));
  app.add_option("--openmp", flags.openmp,
                 "OpenMP runtime of the program, where it cannot be looked "
                 "into (a script, a container)")
      ->check(
          CLI::IsMember({"auto", "libgomp", "libomp", "libiomp5", "libfjomp"}))
      ->capture_default_str();
  app.add_option("--set", texts.settings,
                 "NAME=VALUE in the ranks' environment; repeatable")
      ->allow_extra_args(false);
}

void AddRunFlags(CLI::App& app, Flags& flags, Texts& texts) {
  app.add_option("--output-dir", flags.output_dir,
                 "Folder for a log of each rank, rank.N.log; only rank 0's "
                 "output is shown, too");
  app.add_flag("--dry-run", flags.dry_run,
               "Print command, environment and core map; start nothing");
  app.add_option("--launcher", flags.launcher, "Whose command line to use")
      ->check(CLI::IsMember({"auto", "openmpi", "mpich", "srun", "pjsub"}))
      ->capture_default_str();
  app.add_option("--launcher-args", texts.launcher_arguments,
                 "Words for the launcher, separated by spaces; repeatable")
      ->allow_extra_args(false);
  app.add_flag("--oversubscribe", flags.oversubscribe,
               "Allow more ranks than cores, or threads than CPUs");
  app.add_flag("--allow-run-as-root", flags.allow_root,
               "Let Open MPI run as root (in a container it may anyway)");
  app.add_option("--topology", flags.topology,
                 "With --dry-run: another machine, as an XML file of lstopo or "
                 "a synthetic description of hwloc");
}

void AddKnobs(CLI::App& app, Texts& texts) {
  for (const ConfigOption& option : ConfigOptions()) {
    if (!IsFlag(option)) continue;
    app.add_option(
           FlagOf(option), texts.knobs[option.name],
           absl::StrCat(option.variable, ": ", option.help, " (",
                        option.accepted, "; default '", option.fallback, "')"))
        ->group("hvdlite");
  }
}

// The tool's own words, and the program's, which begin with the first word that
// is neither a flag nor a flag's value.
std::pair<std::vector<std::string>, std::vector<std::string>> SplitWords(
    const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> own;
  size_t i = 0;
  for (; i < arguments.size(); ++i) {
    const std::string word = arguments[i] == "-np" ? "--np" : arguments[i];
    if (word == "--") {
      ++i;
      break;
    }
    if (!absl::StartsWith(word, "-")) break;
    own.push_back(word);
    const CLI::Option* option = app.get_option_no_throw(word);
    if (option != nullptr && option->get_items_expected_max() > 0 &&
        i + 1 < arguments.size()) {
      own.push_back(arguments[++i]);
    }
  }
  return {std::move(own),
          {arguments.begin() + static_cast<long>(i), arguments.end()}};
}

absl::Status FillIn(const Texts& texts, Flags& flags) {
  if (!texts.map.empty()) {
    HVDLITE_ASSIGN_OR_RETURN(flags.map, ParseDomain(texts.map));
  }
  if (!texts.comm_core.empty()) {
    absl::StatusOr<CommCore> comm_core = ParseCommCore(texts.comm_core);
    if (!comm_core.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--comm-core: ", comm_core.status().message()));
    }
    flags.comm_core = *comm_core;
  }
  if (!texts.memory.empty()) {
    HVDLITE_ASSIGN_OR_RETURN(flags.memory, ParseMemoryPolicy(texts.memory));
  }
  HVDLITE_ASSIGN_OR_RETURN(flags.allocator, ParseAllocator(texts.allocator));
  for (const std::string& setting : texts.settings) {
    const std::pair<std::string, std::string> sides =
        absl::StrSplit(setting, absl::MaxSplits('=', 1));
    if (sides.first.empty() || !absl::StrContains(setting, "=")) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set ", setting, ": is not NAME=VALUE"));
    }
    flags.settings.push_back(
        {.name = sides.first, .value = sides.second, .source = "--set"});
  }
  for (const std::string& text : texts.launcher_arguments) {
    for (const absl::string_view word :
         absl::StrSplit(text, ' ', absl::SkipEmpty())) {
      flags.launcher_arguments.emplace_back(word);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& arguments) {
  CLI::App app(kDescription, "hvdliterun");
  Flags flags;
  Texts texts;
  AddRankFlags(app, flags, texts);
  AddRunFlags(app, flags, texts);
  AddKnobs(app, texts);

  auto [own, program] = SplitWords(app, arguments);
  std::reverse(own.begin(), own.end());  // as CLI11 wants them
  try {
    app.parse(own);
  } catch (const CLI::CallForHelp&) {
    flags.help = app.help();
    return flags;
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  flags.program = std::move(program);
  HVDLITE_RETURN_IF_ERROR(FillIn(texts, flags));
  for (const ConfigOption& option : ConfigOptions()) {
    if (IsFlag(option) && app.count(FlagOf(option)) > 0) {
      flags.settings.push_back({.name = option.variable,
                                .value = texts.knobs[option.name],
                                .source = FlagOf(option)});
    }
  }
  if (flags.program.empty()) {
    return absl::InvalidArgumentError("which program? None is given");
  }
  if (!flags.topology.empty() && !flags.dry_run) {
    return absl::InvalidArgumentError(
        "--topology describes another machine: it goes with --dry-run only");
  }
  return flags;
}

}  // namespace hvdlite::launch

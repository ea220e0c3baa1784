#include "tools/hvdliterun/plan/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/config/config_loader.h"
#include "base/environment.h"
#include "base/status_macros.h"
#include "support/command_line.h"
#include "support/flags.h"
#include "tools/hvdliterun/plan/flags_file.h"
#include "tools/hvdliterun/plan/launcher.h"
#include "tools/hvdliterun/plan/plan.h"

namespace hvdlite::launch {
namespace {

constexpr char kDescription[] =
    "Starts PROGRAM on many ranks with this machine's mpirun, mpiexec or srun. "
    "It binds each rank to its cores and memory, and sets environment "
    "variables for the rank's OpenMP runtime, BLAS and malloc. Your own "
    "settings take precedence.";
constexpr int kMaxCount = 1'000'000;
constexpr char kUsage[] = "hvdliterun [options] PROGRAM [argument ...]";
constexpr char kExamples[] =
    "Examples:\n"
    "  hvdliterun -np 2 train_resnet50 --data-dir DIR       on this host\n"
    "  hvdliterun -H n01:4,n02:4 --map numa train_resnet50  with ssh\n"
    "  hvdliterun --map socket --output-dir logs PROGRAM    in a batch job\n"
    "  hvdliterun -np 2 --dry-run PROGRAM                   print the plan\n"
    "See docs/launching.md.";

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return absl::StrCat("Usage: ", kUsage, "\n");
  }
};

std::string FlagOf(const ConfigOption& option) {
  return absl::StrCat("--", absl::StrReplaceAll(option.name, {{"_", "-"}}));
}

// coordinator_core has no flag of its own: --comm-core sets it.
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
      "Mapping and settings of a published study: ",
      absl::StrJoin(Presets(), "; ", [](std::string* out, const Preset& p) {
        absl::StrAppend(out, p.name, ": ", p.help);
      }));
}

template <int kMinimum, int kMaximum>
absl::StatusOr<int> ParseWithin(const std::string& text) {
  HVDLITE_ASSIGN_OR_RETURN(const int64_t number,
                           base::ParseInteger(text, kMinimum, kMaximum));
  return static_cast<int>(number);
}
constexpr auto& ParseCount = ParseWithin<1, kMaxCount>;

absl::StatusOr<Memory> ParseMemoryFlag(const std::string& text) {
  HVDLITE_ASSIGN_OR_RETURN(Memory memory, ParseMemory(text));
  if (memory.policy != MemoryPolicy::kInherit) return memory;
  return absl::InvalidArgumentError(
      absl::StrCat("'inherit' is not one of ", kMemoryWords));
}

absl::StatusOr<Allocator> ParseAllocator(const std::string& text) {
  if (text == "default") return Allocator::kDefault;
  if (text == "jemalloc") return Allocator::kJemalloc;
  if (text == "tcmalloc") return Allocator::kTcmalloc;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not one of default, jemalloc, tcmalloc"));
}

absl::StatusOr<std::vector<std::string>> ParseInterfaces(
    const std::string& text) {
  std::vector<std::string> names = absl::StrSplit(text, ',');
  if (!absl::c_linear_search(names, "")) return names;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not NAME or NAME,NAME"));
}

absl::StatusOr<absl::Duration> ParseSecondsFlag(const std::string& text) {
  HVDLITE_ASSIGN_OR_RETURN(const double seconds, base::ParseSeconds(text));
  return absl::Seconds(seconds);
}

absl::StatusOr<std::string> ParseText(const std::string& text) {
  if (!text.empty()) return text;
  return absl::InvalidArgumentError(
      "the value is empty: give one, or remove the flag");
}

absl::StatusOr<Variable> ParseSetting(absl::string_view text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not NAME=VALUE"));
  }
  return Variable{.name = std::string(text.substr(0, equals)),
                  .value = std::string(text.substr(equals + 1)),
                  .source = "--set"};
}

// Adds a flag with a value of `type`. `parse` reads the value.
template <typename Target, typename Parse>
CLI::Option* Add(CLI::App& app, const char* name, const char* type,
                 Target& target, Parse parse, const std::string& help) {
  return support::AddParsed(app, name, target, parse, help)->type_name(type);
}

void AddRankFlags(CLI::App& app, Flags& flags) {
  Add(app, "-n,--np", "N", flags.ranks, ParseCount,
      "Number of ranks (also: -np N); default: all slots of the allocation");
  auto* hosts = Add(app, "-H,--host", "HOSTS", flags.host_list, ParseText,
                    "Hosts and their slots: h1:4,h2:4");
  Add(app, "--hostfile", "FILE", flags.hostfile, ParseText,
      "File with lines 'host slots=4' or 'host:4'")
      ->excludes(hosts);
  auto* map =
      Add(app, "--map", "node|socket|numa|core", flags.map, ParseDomain,
          "What each rank gets: a share of the node's cores (default), a "
          "socket, a NUMA node or a core");
  Add(app, "--map-by", "ppr:N:DOMAIN[:pe=CORES]", flags.placement,
      ParsePlacement,
      "Open MPI's notation: N ranks per DOMAIN; same as --map DOMAIN "
      "--threads CORES --comm-core none")
      ->excludes(map);
  Add(app, "--threads", "N", flags.threads, ParseCount,
      "Threads per rank; default: its cores without the coordinator's");
  Add(app, "--comm-core", "none|auto|N", flags.comm_core, ParseCommCore,
      absl::StrCat(
          "Core of the coordinator: none; auto: the last core of a "
          "rank with at least ",
          kCoresForACommCore,
          " cores, or a core that --threads leaves free; or the number "
          "of a core of the rank, from 0"));
  Add(app, "--mem", "local|interleave|bind|preferred", flags.memory,
      ParseMemoryFlag,
      "NUMA nodes that hold a rank's memory: local (the node of the CPU that "
      "uses a page first), interleave (pages in turn on all nodes), bind (only "
      "the rank's nodes), preferred (the rank's first node, until it is full). "
      "You can name the nodes: interleave=0,1, bind=0, preferred=1");
  Add(app, "--alloc", "default|jemalloc|tcmalloc", flags.allocator,
      ParseAllocator, "Library with the malloc for the ranks");
  app.add_flag("--huge-pages", flags.huge_pages,
               "Use transparent huge pages for malloc");
  app.add_option("--preset", flags.preset, PresetHelp())
      ->check(CLI::IsMember(PresetNames()));
  app.add_option(
         "--openmp", flags.openmp,
         "OpenMP runtime of the program, if hvdliterun cannot detect it "
         "(a script, a container)")
      ->check(
          CLI::IsMember({"auto", "libgomp", "libomp", "libiomp5", "libfjomp"}))
      ->capture_default_str();
}

// Sets `dry_run` to "text" or "json" if the flag is given.
void AddRunFlags(CLI::App& app, Flags& flags, std::string& dry_run) {
  Add(app, "--output-filename,--output-dir", "DIRECTORY", flags.output_dir,
      ParseText,
      "Directory for the log of each rank, rank.N.log; only rank 0's output is "
      "also shown. It must not contain logs of an earlier job");
  app.add_flag("--overwrite", flags.overwrite,
               "Remove the logs of an earlier job from --output-dir");
  app.add_flag(
      "--report", flags.report,
      "Print a line every few seconds (steps per second, exposed "
      "communication, the slowest rank), and at the end the parts of a "
      "step, the greatest loss of time, and the load of each core");
  app.add_flag(
      "--verbose", flags.verbose,
      "Print the plan (as --dry-run), start the job, and show all messages "
      "of the launcher about a failure");
  app.add_flag("--dry-run{text}", dry_run,
               "Print command, environment and core map, but start nothing; "
               "--dry-run=json prints them for programs")
      ->check(CLI::IsMember({"text", "json"}).description(""));
  Add(app, "--grace", "SECONDS", flags.grace, ParseSecondsFlag,
      "Time for ranks to save after a request to stop (SIGTERM, SIGINT or "
      "SIGUSR1 to hvdliterun); default 60");
  app.add_option("--launcher", flags.launcher,
                 "MPI launcher that starts the ranks")
      ->check(CLI::IsMember(LauncherChoices()))
      ->capture_default_str();
  app.add_option_function<std::vector<std::string>>(
         "--launcher-args",
         [&flags](const std::vector<std::string>& texts) {
           flags.launcher_arguments = absl::StrSplit(absl::StrJoin(texts, " "),
                                                     ' ', absl::SkipEmpty());
         },
         "Arguments for the launcher, separated by spaces; repeatable")
      ->allow_extra_args(false)
      ->type_name("'ARGUMENTS'");
  Add(app, "--network-interface", "NAMES", flags.interfaces, ParseInterfaces,
      "Network interfaces for MPI, UCX and the launcher: eth0,ib0");
  Add(app, "--ssh-port", "PORT", flags.ssh_port, ParseWithin<1, 65535>,
      "Port of the hosts' sshd, if the launcher uses ssh");
  Add(app, "--ssh-identity-file", "FILE", flags.ssh_identity_file, ParseText,
      "Private key for ssh, if the launcher uses ssh");
  app.add_flag("--oversubscribe", flags.oversubscribe,
               "Allow more ranks than cores, or threads than CPUs");
  app.add_flag("--allow-run-as-root", flags.allow_root,
               "Allow Open MPI to run as root (always allowed in a container)");
  Add(app, "--topology", "MACHINE", flags.topology, ParseText,
      "With --dry-run: plan for another machine, given as an XML file of "
      "lstopo or a synthetic description of hwloc");
}

void AddAboutFlags(CLI::App& app, Flags& flags) {
  const auto add = [&](const char* name, About about, const char* help) {
    app.add_flag_callback(
           name, [&flags, about] { flags.about = about; }, help)
        ->configurable(false);
  };
  add("-v,--version", About::kVersion,
      "Print the version of hvdlite and the launcher of this machine");
  add("--check-build", About::kBuild,
      "Print how hvdlite was built and what this machine provides for it");
}

void AddRestartFlags(CLI::App& app, Flags& flags) {
  const std::string usual = app.option_defaults()->get_group();
  app.option_defaults()->group("Restart");
  Add(app, "--max-restarts", "K", flags.max_restarts, ParseWithin<0, kMaxCount>,
      "Start the job again after a failure, at most K times; default 0");
  Add(app, "--min-np", "N", flags.min_ranks, ParseCount,
      "Smallest number of ranks for a restart after hosts are lost; default: "
      "-np");
  Add(app, "--max-np", "N", flags.max_ranks, ParseCount,
      "Largest number of ranks for a restart after hosts appear; default: -np");
  Add(app, "--host-discovery", "PROGRAM", flags.host_discovery, ParseText,
      "Program that prints the available hosts as lines of a host file; it "
      "runs every 5 s");
  Add(app, "--cool-down", "SECONDS", flags.cool_down, ParseSecondsFlag,
      "Time for which a failed host is not used; default 600");
  Add(app, "--elastic-timeout", "SECONDS", flags.elastic_timeout,
      ParseSecondsFlag,
      "Time to wait for hosts if too few are left; default 600");
  app.add_flag("--in-place", flags.in_place,
               "After a rank is lost, the other ranks continue without a "
               "restart, down to --min-np ranks (needs Open MPI 5 with ULFM)");
  app.add_flag("--commit-memory", flags.commit_memory,
               "Also keep commits (hvdlite/elastic.h) in this process's "
               "memory, so that a restart loses only the steps since the last "
               "commit");
  app.option_defaults()->group(usual);
}

// --set is added first. Values are read in the order of the options, so it
// takes precedence over a setting's own flag.
void AddSettings(CLI::App& app, Flags& flags) {
  app.add_option_function<std::vector<std::string>>(
         "--set",
         [&flags](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             absl::StatusOr<Variable> setting = ParseSetting(text);
             if (!setting.ok()) {
               throw CLI::ValidationError(
                   "--set", std::string(setting.status().message()));
             }
             flags.settings.push_back(*std::move(setting));
           }
         },
         "Environment variable for the ranks; repeatable")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  for (const ConfigOption& option : ConfigOptions()) {
    if (!IsFlag(option)) continue;
    app.add_option_function<std::string>(
           FlagOf(option),
           [&flags, name = option.variable,
            source = FlagOf(option)](const std::string& value) {
             flags.settings.push_back(
                 {.name = name, .value = value, .source = source});
           },
           absl::StrCat(option.variable, ": ", option.help, " (",
                        option.accepted, "; default '", option.fallback, "')"))
        ->type_name("VALUE")
        ->group("hvdlite");
  }
}

// Splits the arguments into hvdliterun's own and the program's. The latter
// begin with the first one that is neither a flag nor a flag's value.
std::pair<std::vector<std::string>, std::vector<std::string>> SplitWords(
    const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> own;
  size_t i = 0;
  for (; i < arguments.size(); ++i) {
    const std::string argument = arguments[i] == "-np" ? "--np" : arguments[i];
    if (argument == "--") {
      ++i;
      break;
    }
    if (!absl::StartsWith(argument, "-")) break;
    own.push_back(argument);
    const CLI::Option* option = app.get_option_no_throw(argument);
    if (option != nullptr && option->get_items_expected_max() > 0 &&
        i + 1 < arguments.size()) {
      own.push_back(arguments[++i]);
    }
  }
  return {std::move(own),
          {arguments.begin() + static_cast<long>(i), arguments.end()}};
}

// The error for an unknown flag: usually it is a flag of mpirun or mistyped.
absl::Status UnknownFlag(const CLI::App& app, const std::string& argument) {
  if (argument == "--bind-to" || argument == "--rank-by") {
    return absl::InvalidArgumentError(absl::StrCat(
        argument,
        " is a flag of mpirun; hvdliterun binds the ranks itself: use --map "
        "with node, socket, numa or core"));
  }
  const std::string nearest = NearestFlag(app, argument);
  return absl::InvalidArgumentError(absl::StrCat(
      argument, " is not a flag of hvdliterun; ",
      nearest.empty()
          ? absl::StrCat("pass flags to the launcher with --launcher-args '",
                         argument, " ...', and variables with --set NAME=VALUE")
          : absl::StrCat("did you mean ", nearest, "?")));
}

// Sets the flags for which --map-by is a shorthand.
void SpellOut(const Placement& placement, Flags& flags) {
  flags.map = placement.domain;
  if (!placement.cores_per_rank.has_value()) return;
  if (!flags.threads.has_value()) flags.threads = placement.cores_per_rank;
  if (!flags.comm_core.has_value()) {
    flags.comm_core = CommCore{.kind = CommCore::Kind::kNone};
  }
}

absl::StatusOr<Flags> CheckRestart(Flags flags) {
  const int most = flags.max_ranks.value_or(flags.ranks.value_or(kMaxCount));
  if (flags.min_ranks.value_or(1) > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("--min-np ", *flags.min_ranks, " is more than ",
                     flags.max_ranks.has_value() ? "--max-np " : "-np ", most));
  }
  if (flags.in_place && !flags.min_ranks.has_value()) {
    return absl::InvalidArgumentError(
        "--in-place needs --min-np N, the smallest number of ranks with which "
        "the job may continue");
  }
  if (flags.ranks.value_or(1) > flags.max_ranks.value_or(kMaxCount)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "-np ", *flags.ranks, " is more than --max-np ", *flags.max_ranks));
  }
  if (!flags.host_discovery.empty() &&
      !(flags.host_list.empty() && flags.hostfile.empty())) {
    return absl::InvalidArgumentError(
        "--host-discovery names the hosts: remove -H and --hostfile");
  }
  return flags;
}

}  // namespace

absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& arguments) {
  CLI::App app(kDescription, "hvdliterun");
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(kExamples);
  Flags flags;
  std::string dry_run;
  AddRankFlags(app, flags);
  AddRunFlags(app, flags, dry_run);
  AddRestartFlags(app, flags);
  AddSettings(app, flags);
  AddAboutFlags(app, flags);
  app.set_config("--config-file", "",
                 "File with flags, in lines such as np = 4 or preset = "
                 "\"a64fx-numa\"; flags of the command line take precedence")
      ->type_name("FILE");
  const auto file = std::make_shared<FlagsFile>(app);
  app.config_formatter(file);

  auto [own, program] = SplitWords(app, arguments);
  std::reverse(own.begin(), own.end());  // the order that CLI11 needs
  try {
    app.parse(own);
  } catch (const CLI::CallForHelp&) {
    flags.help = support::HelpOf(app);
    return flags;
  } catch (const CLI::ExtrasError&) {
    return UnknownFlag(app, app.remaining().front());
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(file->WhatIsWrong(error.what()));
  }
  if (flags.about.has_value()) return flags;
  if (flags.placement.has_value()) SpellOut(*flags.placement, flags);
  file->Order(flags.settings);
  if (!dry_run.empty()) {
    flags.dry_run =
        dry_run == "json" ? DryRunFormat::kJson : DryRunFormat::kText;
  }
  flags.program = std::move(program);
  if (flags.program.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no program is given: ", kUsage));
  }
  if (!flags.topology.empty() && !flags.dry_run.has_value()) {
    return absl::InvalidArgumentError(
        "--topology describes another machine: use it only with --dry-run");
  }
  return CheckRestart(flags);
}

}  // namespace hvdlite::launch

#include "tools/hvdliterun/plan/settings.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace hvdlite::launch {
namespace {

constexpr char kThreadCaches[] = "4294967296";

struct LibraryNames {
  std::vector<std::string> files;
  std::string package;
};

LibraryNames NamesOf(Allocator allocator) {
  if (allocator == Allocator::kJemalloc) {
    return {.files = {"libjemalloc.so.2", "libjemalloc.so"},
            .package = "libjemalloc2"};
  }
  return {.files = {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4",
                    "libtcmalloc_minimal.so", "libtcmalloc.so"},
          .package = "libtcmalloc-minimal4"};
}

constexpr char kProcBind[] = "OMP_PROC_BIND";

void NoteSharedCores(const std::string& setting, const std::string& origin,
                     Variables& variables) {
  variables.Note(absl::StrCat(
      setting, " of ", origin,
      " does not pin threads: with --oversubscribe ranks may share cores, and "
      "each would pin its threads to the first of them"));
}

// `origin`: where the setting NAME=value comes from.
void OfferTranslation(const std::string& name, const std::string& value,
                      const std::string& origin, bool may_share_cores,
                      Variables& variables) {
  const support::KmpTranslation translation =
      support::TranslateKmp(name, value);
  const std::string setting = absl::StrCat(name, "=", value);
  std::vector<std::string> instead;
  for (const auto& [other, text] : translation.variables) {
    // AddRankVariables() gives each rank the list of its own cores.
    if (other == "OMP_PLACES" && text == "cores") {
      if (!may_share_cores) instead.push_back("OMP_PLACES=its cores");
      continue;
    }
    if (other == kProcBind && may_share_cores) {
      NoteSharedCores(setting, origin, variables);
      continue;
    }
    if (variables.Offer(other, text,
                        absl::StrCat(origin, " (", setting, ")"))) {
      instead.push_back(absl::StrCat(other, "=", text));
    }
  }
  std::string note =
      absl::StrCat(setting, " of ", origin,
                   " does nothing, because the program links libgomp");
  if (!instead.empty()) {
    absl::StrAppend(&note, "; it gets ", absl::StrJoin(instead, " "),
                    " instead");
  } else if (!translation.remark.empty()) {
    absl::StrAppend(&note, " (", translation.remark, ")");
  }
  variables.Note(note);
}

void AddPreset(const Preset& preset, support::OpenMpRuntime runtime,
               bool may_share_cores, Variables& variables) {
  const std::string source = absl::StrCat("--preset ", preset.name);
  for (const auto& [name, value] : preset.variables) {
    const bool kmp = absl::StartsWith(name, "KMP_");
    if (kmp && runtime == support::OpenMpRuntime::kGnu) {
      OfferTranslation(name, value, source, may_share_cores, variables);
    } else if (name == "KMP_AFFINITY" && may_share_cores) {
      NoteSharedCores(absl::StrCat(name, "=", value), source, variables);
    } else if (name == "KMP_AFFINITY") {
      // All runtimes know the other variables. OMP_PLACES is set for each rank.
      for (const auto& [other, text] :
           support::TranslateKmp(name, value).variables) {
        if (other != "OMP_PLACES") variables.Offer(other, text, source);
      }
    } else {
      variables.Offer(name, value, source);
    }
  }
}

// Adds a note about variables of Fujitsu's large-page library if it is not
// linked.
void NoteLargePages(Variables& variables) {
  std::string first;
  for (const char* name : {"XOS_MMM_L_HPAGE_TYPE", "XOS_MMM_L_PAGING_POLICY"}) {
    const std::string value = variables.Get(name).value_or("");
    if (value == "none") return;  // large pages are not requested
    if (first.empty() && !value.empty()) first = absl::StrCat(name, "=", value);
  }
  const bool preloaded =
      absl::StrContains(variables.Get("LD_PRELOAD").value_or(""), "libmpg");
  if (first.empty() || preloaded) return;
  variables.Note(absl::StrCat(
      first,
      " and other XOS_MMM_L_* do nothing: the program does not link Fujitsu's "
      "large-page library, libmpg. Fujitsu's compiler links it with "
      "-Klargepage; others with -no-pie "
      "-Wl,-T/opt/FJSVxos/mmm/util/bss-2mb.lds -L/opt/FJSVxos/mmm/lib64 "
      "-lmpg, before all other libraries"));
}

// Adds the allocator's variables, and LD_PRELOAD if it is a separate library
// (after the user's own entries).
absl::Status AddAllocator(const Flags& flags,
                          const HostEnvironment& host_environment,
                          Variables& variables) {
  if (flags.allocator != Allocator::kDefault) {
    HVDLITE_ASSIGN_OR_RETURN(const std::string library,
                             FindAllocator(flags.allocator, host_environment));
    variables.AppendPath("LD_PRELOAD", library, "--alloc");
  }
  switch (flags.allocator) {
    case Allocator::kDefault: {
      // No MALLOC_MMAP_THRESHOLD_: glibc before 2.35 refuses more than 32 MiB.
      variables.Offer("MALLOC_MMAP_MAX_", "0", "default");
      variables.Offer("MALLOC_TRIM_THRESHOLD_", "-1", "default");
      if (flags.huge_pages) {
        variables.Offer("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1",
                        "--huge-pages");
      }
      break;
    }
    case Allocator::kJemalloc:
      // One arena for large blocks, cleaned up in the background and very
      // rarely: from PyTorch's performance tuning guide.
      variables.Offer(
          "MALLOC_CONF",
          absl::StrCat("oversize_threshold:1,background_thread:true,"
                       "metadata_thp:auto,dirty_decay_ms:9000000000,"
                       "muzzy_decay_ms:9000000000",
                       flags.huge_pages ? ",thp:always" : ""),
          "--alloc jemalloc");
      break;
    case Allocator::kTcmalloc:
      variables.Offer("TCMALLOC_RELEASE_RATE", "0", "--alloc tcmalloc");
      variables.Offer("TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES", kThreadCaches,
                      "--alloc tcmalloc");
      if (flags.huge_pages) {
        variables.Note(
            "--huge-pages does nothing with tcmalloc, which follows the "
            "system's setting (/sys/kernel/mm/transparent_hugepage/enabled)");
      }
      break;
  }
  return absl::OkStatus();
}

constexpr char kPlan[] = "cores of the rank";

}  // namespace

absl::StatusOr<std::string> FindAllocator(
    Allocator allocator, const HostEnvironment& host_environment) {
  const LibraryNames names = NamesOf(allocator);
  std::vector<std::string> directories = absl::StrSplit(
      host_environment.environment.get("LD_LIBRARY_PATH").value_or(""), ':',
      absl::SkipEmpty());
  for (const char* directory :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
        "/usr/local/lib64", "/usr/local/lib", "/usr/lib"}) {
    directories.emplace_back(directory);
  }
  for (const std::string& directory : directories) {
    for (const std::string& file : names.files) {
      std::string path = absl::StrCat(directory, "/", file);
      if (host_environment.exists(path)) return path;
    }
  }
  return absl::NotFoundError(absl::StrCat(
      names.files.front(), " is not on this machine (Debian: ", names.package,
      "): install it, add its directory to LD_LIBRARY_PATH, or remove "
      "--alloc"));
}

support::OpenMpRuntime RuntimeOf(
    const std::vector<support::OpenMpRuntime>& linked) {
  if (linked.empty()) return support::OpenMpRuntime::kNone;
  return linked.size() == 1 ? linked.front() : support::OpenMpRuntime::kUnknown;
}

absl::Status AddJobVariables(const Flags& flags, const Program& program,
                             const HostEnvironment& host_environment,
                             Variables& variables) {
  const bool may_share_cores = flags.oversubscribe;
  const support::OpenMpRuntime runtime = RuntimeOf(program.openmp);
  if (program.openmp.size() > 1) {
    variables.Note(absl::StrCat(
        "the program links ", program.openmp.size(), " OpenMP runtimes (",
        absl::StrJoin(program.openmp, ", ",
                      [](std::string* out, support::OpenMpRuntime one) {
                        absl::StrAppend(out, support::OpenMpRuntimeName(one));
                      }),
        "): each starts its own threads on the same cores; link only one"));
  }
  for (const Variable& flag : flags.settings) {
    variables.Set(flag.name, flag.value, flag.source);
  }
  if (runtime == support::OpenMpRuntime::kGnu) {
    for (const std::string& name : variables.UserNames("KMP_")) {
      OfferTranslation(name, variables.Get(name).value_or(""),
                       "the environment", may_share_cores, variables);
    }
    for (const Variable& flag : flags.settings) {
      if (absl::StartsWith(flag.name, "KMP_")) {
        OfferTranslation(flag.name, flag.value, flag.source, may_share_cores,
                         variables);
      }
    }
  }
  if (const Preset* preset = FindPreset(flags.preset)) {
    AddPreset(*preset, runtime, may_share_cores, variables);
  }
  if (program.can_be_looked_into &&
      !support::HasLargePageLibrary(program.libraries)) {
    NoteLargePages(variables);
  }
  // MPI_Init of MVAPICH2 and Intel MPI would bind the ranks a second time.
  variables.Offer("MV2_ENABLE_AFFINITY", "0", "default");
  variables.Offer("I_MPI_PIN", "0", "default");
  return AddAllocator(flags, host_environment, variables);
}

std::string OwnArrangement(support::OpenMpRuntime openmp,
                           const Variables& variables) {
  if (openmp != support::OpenMpRuntime::kLlvm &&
      openmp != support::OpenMpRuntime::kIntel &&
      variables.Has("GOMP_CPU_AFFINITY")) {
    return "GOMP_CPU_AFFINITY";
  }
  if (openmp != support::OpenMpRuntime::kGnu && variables.Has("KMP_AFFINITY")) {
    return "KMP_AFFINITY";
  }
  return "";
}

void AddRankVariables(const Machine& machine, const RankPlan& plan,
                      const RankChoices& choices, Variables& variables) {
  const std::string threads = absl::StrCat(plan.threads);
  if (choices.threads_given) {
    variables.Set("OMP_NUM_THREADS", threads, "--threads");
  } else {
    variables.Offer("OMP_NUM_THREADS", threads, kPlan);
  }
  const std::string own = OwnArrangement(choices.openmp, variables);
  if (!own.empty()) {
    variables.Note(absl::StrCat(own, "=", variables.Get(own).value_or(""),
                                " places the threads: OMP_PROC_BIND and "
                                "OMP_PLACES are not changed"));
  } else if (plan.oversubscribed) {
    variables.Offer("OMP_PROC_BIND", "false", "ranks share cores");
  } else {
    variables.Offer("OMP_PROC_BIND", "close", "default");
    variables.Offer("OMP_PLACES", OpenMpPlaces(machine, plan), kPlan);
  }
  const std::optional<int> cpu = CoordinatorCpu(machine, plan);
  const std::string core = cpu.has_value() ? absl::StrCat(*cpu) : "none";
  if (choices.comm_core_given) {
    variables.Set("HVDLITE_COORDINATOR_CORE", core, "--comm-core");
  } else {
    variables.Offer("HVDLITE_COORDINATOR_CORE", core, kPlan);
  }
}

}  // namespace hvdlite::launch

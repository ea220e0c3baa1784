#include "tools/hvdliterun/launch/launch_options.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvdlite::launch {
namespace {

// Open MPI refuses to run as root unless told.
absl::Status CheckRoot(const Flags& flags, const Surroundings& surroundings,
                       LaunchOptions& launch, Variables& variables) {
  if (launch.launcher.launcher != Launcher::kOpenMpi || !surroundings.root) {
    return absl::OkStatus();
  }
  const auto is_on = [&](const char* name) {
    return surroundings.environment.get(name).value_or("") == "1";
  };
  if (is_on("OMPI_ALLOW_RUN_AS_ROOT") &&
      is_on("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")) {
    return absl::OkStatus();
  }
  launch.allow_root = true;
  if (flags.allow_root) return absl::OkStatus();
  if (!IsContainer(surroundings)) {
    return absl::InvalidArgumentError(
        "Open MPI refuses to run as root, and so does hvdliterun outside a "
        "container: a job that goes astray could harm the system. If you mean "
        "it, add --allow-run-as-root");
  }
  variables.Note(
      "root in a container: Open MPI gets --allow-run-as-root by itself");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LaunchOptions> LaunchOptionsOf(const Flags& flags,
                                              const Surroundings& surroundings,
                                              const Allocation& allocation,
                                              const std::vector<Host>& hosts,
                                              Variables& variables) {
  LaunchOptions launch = {
      .launcher = {},
      .hosts = hosts,
      .local = allocation.hosts.empty(),
      .slots_of_batch_system = allocation.system != BatchSystem::kNone,
      .oversubscribe = flags.oversubscribe,
      .intel_pin = variables.Get("I_MPI_PIN").value_or(""),
      .exported = VariablesToExport(surroundings.environment),
      .arguments = flags.launcher_arguments};
  const absl::StatusOr<LauncherProgram> launcher = ChooseLauncher(
      flags.launcher, allocation.system, surroundings.version_of);
  if (launcher.ok()) {
    launch.launcher = *launcher;
  } else if (flags.dry_run && flags.launcher != "auto") {  // another machine's
    HVDLITE_ASSIGN_OR_RETURN(const Launcher named,
                             ParseLauncher(flags.launcher));
    launch.launcher = ProgramOf(named);
    variables.Note(std::string(launcher.status().message()));
  } else {
    return launcher.status();
  }
  HVDLITE_RETURN_IF_ERROR(CheckRoot(flags, surroundings, launch, variables));
  return launch;
}

}  // namespace hvdlite::launch

#include "tools/hvdliterun/launch/launch_options.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace hvdlite::launch {
namespace {

// Open MPI refuses to run as root unless a flag or variables allow it.
absl::Status CheckRoot(const Flags& flags,
                       const HostEnvironment& host_environment,
                       LaunchOptions& launch, Variables& variables) {
  if (!KindOf(launch.launcher.launcher).refuses_root ||
      !host_environment.root) {
    return absl::OkStatus();
  }
  const auto is_on = [&](const char* name) {
    return host_environment.environment.get(name).value_or("") == "1";
  };
  if (is_on("OMPI_ALLOW_RUN_AS_ROOT") &&
      is_on("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")) {
    return absl::OkStatus();
  }
  launch.allow_root = true;
  if (flags.allow_root) return absl::OkStatus();
  if (!IsContainer(host_environment)) {
    return absl::InvalidArgumentError(
        "Open MPI refuses to run as root, and hvdliterun refuses it outside a "
        "container: a faulty job could damage the system. To run it anyway, "
        "add --allow-run-as-root");
  }
  variables.Note(
      "root in a container: hvdliterun passes --allow-run-as-root to Open MPI");
  return absl::OkStatus();
}

// --in-place needs Open MPI 5. This error is clearer than the one of an older
// mpirun about the unknown flag.
absl::Status CheckInPlace(const Flags& flags, LaunchOptions& launch) {
  if (!flags.in_place) return absl::OkStatus();
  const LauncherProgram& program = launch.launcher;
  if (program.launcher != Launcher::kOpenMpi ||
      MajorVersion(program).value_or(5) < 5) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--in-place needs Open MPI 5 or later, but the launcher is ",
        program.version.empty() ? program.program
                                : absl::StrCat("'", VersionLine(program), "'"),
        ": use --max-restarts instead, which starts the job again"));
  }
  launch.in_place = true;
  return absl::OkStatus();
}

// Interfaces that this host does not have are an error if it is part of the
// job.
absl::Status AddInterfaces(const Flags& flags,
                           const HostEnvironment& host_environment,
                           bool this_host, LaunchOptions& launch,
                           Variables& variables) {
  if (flags.interfaces.empty()) return absl::OkStatus();
  const LauncherKind& kind = KindOf(launch.launcher.launcher);
  const std::string names = absl::StrJoin(flags.interfaces, ",");
  if (flags.interfaces.size() > kind.max_interfaces) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--network-interface ", names, ": the launcher ",
        launch.launcher.program, " (", kind.name, ") accepts ",
        kind.max_interfaces == 0 ? "no interface: remove the flag"
                                 : "only one interface: name one"));
  }
  const std::vector<NetworkInterface> known = host_environment.interfaces();
  std::vector<std::string> devices;  // as UCX names them
  for (const std::string& name : flags.interfaces) {
    devices.push_back(name);
    const auto found =
        std::find_if(known.begin(), known.end(),
                     [&](const auto& one) { return one.name == name; });
    if (found != known.end()) {
      if (!found->rdma_device.empty()) devices.push_back(found->rdma_device);
      continue;
    }
    const std::string message = absl::StrCat(
        "--network-interface ", names, ": this host has no ", name, "; it has ",
        absl::StrJoin(known, ", ", [](std::string* out, const auto& one) {
          absl::StrAppend(out, one.name);
        }));
    if (this_host) return absl::InvalidArgumentError(message);
    variables.Note(message + " (it is not part of the job)");
  }
  launch.interfaces = flags.interfaces;
  variables.Set("UCX_NET_DEVICES", absl::StrJoin(devices, ","),
                "--network-interface");
  // srun does not select networks. Ranks of Open MPI read this variable; other
  // ranks ignore it.
  if (launch.launcher.launcher == Launcher::kSrun) {
    variables.Set("OMPI_MCA_btl_tcp_if_include", names, "--network-interface");
  }
  return absl::OkStatus();
}

absl::Status AddSsh(const Flags& flags, const HostEnvironment& host_environment,
                    const Allocation& allocation, LaunchOptions& launch,
                    Variables& variables) {
  const std::string& key = flags.ssh_identity_file;
  if (!flags.ssh_port.has_value() && key.empty()) return absl::OkStatus();
  const std::string flag =
      flags.ssh_port.has_value() ? "--ssh-port" : "--ssh-identity-file";
  const LauncherKind& kind = KindOf(launch.launcher.launcher);
  if (!kind.starts_by_ssh) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": the launcher ", launch.launcher.program, " (",
                     kind.name, ") does not use ssh: remove the flag"));
  }
  // Launchers split the arguments for ssh at spaces.
  if (!key.empty() &&
      (!host_environment.exists(key) || absl::StrContains(key, " "))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--ssh-identity-file: ",
        host_environment.exists(key)
            ? absl::StrCat("'", key,
                           "' contains a space, which launchers cannot "
                           "pass on: copy or link the file")
            : absl::StrCat("there is no ", key, ": correct the path")));
  }
  if (flags.ssh_port.has_value()) {
    launch.ssh = {"-p", absl::StrCat(*flags.ssh_port)};
  }
  if (!key.empty()) launch.ssh.insert(launch.ssh.end(), {"-i", key});
  if (launch.launcher.launcher == Launcher::kMpich) {  // Hydra's, and Intel's
    const std::string words = absl::StrJoin(launch.ssh, " ");
    launch.environment = {{"HYDRA_LAUNCHER_EXTRA_ARGS", words},
                          {"I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", words}};
  }
  if (allocation.system != BatchSystem::kNone) {
    variables.Note(absl::StrCat(
        flag, " has an effect only if ", launch.launcher.program,
        " uses ssh in this job; usually it starts ranks through the batch "
        "system"));
  }
  return absl::OkStatus();
}

// A job step reserves its CPUs. The launcher starts its daemons or ranks as
// steps within it, and these would wait for its end. SLURM_OVERLAP is srun's
// --overlap (SLURM 20.11 and later).
void AddOverlap(const base::Environment& environment, LaunchOptions& launch,
                Variables& variables) {
  if (!environment.get("SLURM_STEP_ID").has_value() ||
      environment.get("SLURM_OVERLAP").has_value()) {
    return;
  }
  variables.Note(
      "hvdliterun runs in a job step of SLURM (SLURM_STEP_ID is set), and the "
      "ranks share its CPUs: the launcher gets SLURM_OVERLAP=1, or it would "
      "wait for the end of the step");
  launch.environment.emplace_back("SLURM_OVERLAP", "1");
}

}  // namespace

absl::StatusOr<LaunchOptions> LaunchOptionsOf(
    const Flags& flags, const HostEnvironment& host_environment,
    const Allocation& allocation, const std::vector<Host>& hosts,
    bool this_host, const std::vector<support::Library>& libraries,
    Variables& variables) {
  LaunchOptions launch = {
      .hosts = hosts,
      .local = allocation.hosts.empty(),
      .slots_of_batch_system = allocation.system != BatchSystem::kNone,
      .oversubscribe = flags.oversubscribe,
      .intel_pin = variables.Get("I_MPI_PIN").value_or(""),
      .exported = VariablesToExport(host_environment.environment),
      .arguments = flags.launcher_arguments};
  const absl::StatusOr<LauncherProgram> launcher = ChooseLauncher(
      flags.launcher, allocation.system, host_environment.version_of,
      LauncherOfLibraries(libraries));
  if (launcher.ok()) {
    launch.launcher = *launcher;
  } else if (flags.dry_run.has_value() &&
             flags.launcher != "auto") {  // a launcher of another machine
    HVDLITE_ASSIGN_OR_RETURN(const Launcher named,
                             ParseLauncher(flags.launcher));
    launch.launcher = ProgramOf(named);
    variables.Note(std::string(launcher.status().message()));
  } else {
    return launcher.status();
  }
  HVDLITE_RETURN_IF_ERROR(
      CheckRoot(flags, host_environment, launch, variables));
  HVDLITE_RETURN_IF_ERROR(CheckInPlace(flags, launch));
  HVDLITE_RETURN_IF_ERROR(
      AddInterfaces(flags, host_environment, this_host, launch, variables));
  HVDLITE_RETURN_IF_ERROR(
      AddSsh(flags, host_environment, allocation, launch, variables));
  if (allocation.system == BatchSystem::kSlurm) {
    AddOverlap(host_environment.environment, launch, variables);
  }
  return launch;
}

}  // namespace hvdlite::launch

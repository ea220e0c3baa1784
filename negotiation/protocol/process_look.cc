#include "negotiation/protocol/process_look.h"

#include <sys/syscall.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/fixed_point.h"

namespace hvdlite::negotiation {
namespace {

constexpr double kComputingShare = 0.05;         // of the time
constexpr double kWorkingBytesPerMs = 104.8576;  // 1 MiB per 10 s

bool HasEnded(const ProcessLook& look) {
  return look.state == 'Z' || look.state == 'X' || look.state == 'x';
}

bool IsStopped(const ProcessLook& look) {
  return look.state == 'T' || look.state == 't';
}

bool UsesCpu(const ProcessLook& look) {
  return static_cast<double>(look.cpu_ms) >
         kComputingShare * static_cast<double>(look.over_ms);
}

bool ReadsOrWrites(const ProcessLook& look) {
  return look.over_ms > 0 &&
         static_cast<double>(look.io_bytes) >
             kWorkingBytesPerMs * static_cast<double>(look.over_ms);
}

std::string Seconds(int64_t ms) {
  return ms < 100 ? absl::StrCat(ms, " ms")
                  : absl::StrCat(
                        base::FixedPoint(static_cast<double>(ms) * 1e-3, 1),
                        " s");
}

}  // namespace

ProcessLook LookOf(const ProcessSample& before, const ProcessSample& now) {
  ProcessLook look;
  look.state = now.state;
  look.sleeps_in = now.sleeps_in;
  look.cpu_ms = std::max<int64_t>(now.cpu_ns - before.cpu_ns, 0) / 1'000'000;
  look.over_ms = std::max<int64_t>(now.at_ns - before.at_ns, 0) / 1'000'000;
  look.io_bytes = std::max<int64_t>(now.io_bytes - before.io_bytes, 0);
  return look;
}

Standing StandingOf(const ProcessLook& look) {
  if (IsStopped(look) || HasEnded(look)) return Standing::kStuck;
  if (look.waits_for_ranks) return Standing::kWaiting;
  return UsesCpu(look) || ReadsOrWrites(look) ? Standing::kComputing
                                              : Standing::kStuck;
}

std::string DescribeProcess(const ProcessLook& look) {
  if (look.state == 0) return "";
  if (IsStopped(look)) {
    return "is stopped (T), for example by SIGSTOP or a debugger";
  }
  if (HasEnded(look)) return "has ended";
  if (look.waits_for_ranks) return "waits in hvdlite for other ranks";
  const std::string spent = absl::StrCat(
      Seconds(look.cpu_ms), " of CPU time in the last ", Seconds(look.over_ms));
  if (UsesCpu(look)) {
    return absl::StrCat("computes (", spent, "): slow, not stuck");
  }
  if (ReadsOrWrites(look)) {
    return absl::StrCat(
        "reads and writes (",
        base::FixedPoint(static_cast<double>(look.io_bytes) / (1 << 20), 1),
        " MiB in the last ", Seconds(look.over_ms), "): slow, not stuck");
  }
  const std::string where =
      look.sleeps_in.empty() ? "" : absl::StrCat(" in ", look.sleeps_in);
  switch (look.state) {
    case 'R':
      return absl::StrCat("is runnable, but hardly runs (", spent, ")");
    case 'D':
      return absl::StrCat("sleeps", where,
                          " and cannot be interrupted (D): it may wait for a "
                          "disk or a network file system (",
                          spent, ")");
    default:
      return absl::StrCat("sleeps", where, " (", spent, ")");
  }
}

std::string SystemCallName(int64_t number) {
  struct Name {
    int64_t number;
    const char* name;
  };
  // System calls in which processes usually sleep. Some do not exist
  // everywhere.
  static constexpr Name kNames[] = {{SYS_read, "read"},
                                    {SYS_write, "write"},
                                    {SYS_pread64, "pread"},
                                    {SYS_pwrite64, "pwrite"},
                                    {SYS_readv, "readv"},
                                    {SYS_writev, "writev"},
                                    {SYS_futex, "futex"},
                                    {SYS_nanosleep, "nanosleep"},
                                    {SYS_clock_nanosleep, "clock_nanosleep"},
#ifdef SYS_poll
                                    {SYS_poll, "poll"},
                                    {SYS_select, "select"},
                                    {SYS_epoll_wait, "epoll_wait"},
                                    {SYS_open, "open"},
                                    {SYS_stat, "stat"},
                                    {SYS_pause, "pause"},
#endif
                                    {SYS_ppoll, "ppoll"},
                                    {SYS_pselect6, "pselect"},
                                    {SYS_epoll_pwait, "epoll_pwait"},
                                    {SYS_openat, "openat"},
                                    {SYS_newfstatat, "fstatat"},
                                    {SYS_close, "close"},
                                    {SYS_fsync, "fsync"},
                                    {SYS_fdatasync, "fdatasync"},
                                    {SYS_flock, "flock"},
                                    {SYS_fcntl, "fcntl"},
                                    {SYS_ioctl, "ioctl"},
                                    {SYS_connect, "connect"},
                                    {SYS_accept, "accept"},
                                    {SYS_accept4, "accept"},
                                    {SYS_recvfrom, "recv"},
                                    {SYS_recvmsg, "recvmsg"},
                                    {SYS_sendto, "send"},
                                    {SYS_sendmsg, "sendmsg"},
                                    {SYS_wait4, "wait"},
                                    {SYS_waitid, "waitid"},
                                    {SYS_rt_sigsuspend, "sigsuspend"},
                                    {SYS_rt_sigtimedwait, "sigtimedwait"},
                                    {SYS_munmap, "munmap"},
                                    {SYS_sched_yield, "sched_yield"}};
  for (const Name& name : kNames) {
    if (name.number == number) return name.name;
  }
  return absl::StrCat("system call ", number);
}

}  // namespace hvdlite::negotiation

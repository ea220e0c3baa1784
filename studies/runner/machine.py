"""What this machine is, and what else runs on it."""

import os
import pathlib
import platform
import re
import resource
import subprocess

from bench.lib import launch


def cores():
    """Those that this process may use; hardware threads of a core are one."""
    return len(launch.allowed_cores())


def numa_nodes():
    """With processors of their own; memory alone does not count."""
    lists = pathlib.Path("/sys/devices/system/node").glob("node[0-9]*/cpulist")
    return max(1, sum(1 for file in lists if file.read_text().strip()))


def processor():
    found = re.search(r"^model name\s*:\s*(.*)$", _read("/proc/cpuinfo"), re.MULTILINE)
    return found.group(1).strip() if found else platform.machine()


def _read(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _memory():
    found = re.search(r"^MemTotal:\s*(\d+) kB", _read("/proc/meminfo"), re.MULTILINE)
    return "%.1f GiB" % (int(found.group(1)) / 2**20) if found else "unknown"


def _sockets():
    files = pathlib.Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/physical_package_id")
    return max(1, len({file.read_text().strip() for file in files}))


def blas_of(program):
    """The BLAS that the loader gives a program, as file and folder tell it, with the kernels that
    tools/openblas_core asks for."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True).stdout
    found = re.search(r"(?:libblas|libopenblas|libmkl_rt|libblis|libfjlapack)\S* => (\S+)", listed)
    if not found:
        return "inside LibTorch"
    file = pathlib.Path(found.group(1)).resolve()
    core = launch.openblas_core()
    return "%s/%s%s" % (file.parent.name, file.name,
                        ", OPENBLAS_CORETYPE=" + core["OPENBLAS_CORETYPE"] if core else "")


def facts(program):
    """By name, as people read them; `program` is one of the build that uses LibTorch. No host's
    name: pages are published."""
    return {
        "processor": processor(),
        "cores": "%d of this process, %d hardware threads, %d sockets" % (
            cores(), len(os.sched_getaffinity(0)), _sockets()),
        "NUMA nodes": str(numa_nodes()),
        "memory": _memory(),
        "kernel": platform.system() + " " + platform.release(),
        "BLAS": blas_of(program),
    }


def busy_seconds():
    """CPU time that all processors have worked (or the hypervisor took), and that of children of
    this process that have ended."""
    # cpu user nice system idle iowait irq softirq steal: man 5 proc_stat
    ticks = [int(word) for word in _read("/proc/stat").split("\n")[0].split()[1:9]]
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ((sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK"),
            children.ru_utime + children.ru_stime)

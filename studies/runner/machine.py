"""Facts about this machine, and about other programs on it."""

import os
import pathlib
import platform
import re
import resource
import subprocess

from bench.lib import launch


def cores():
    """Returns the number of cores that this process may use. Hardware threads of a core count as one."""
    return len(launch.allowed_cores())


def numa_nodes():
    """Returns the number of NUMA nodes with processors. Nodes with memory only do not count."""
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
    """Returns the BLAS that the loader gives a program, as directory and file, with the kernels that
    tools/openblas_core selects."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True).stdout
    found = re.search(r"(?:libblas|libopenblas|libmkl_rt|libblis|libfjlapack)\S* => (\S+)", listed)
    if not found:
        return "inside LibTorch"
    file = pathlib.Path(found.group(1)).resolve()
    core = launch.openblas_core()
    return "%s/%s%s" % (file.parent.name, file.name,
                        ", OPENBLAS_CORETYPE=" + core["OPENBLAS_CORETYPE"] if core else "")


def facts(program):
    """Returns readable facts by name. `program` is a program of the build that uses LibTorch. The
    host's name is left out, since pages are published."""
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
    """Returns the CPU time of all processors (with that of the hypervisor), and the CPU time of this
    process's children that have ended."""
    # cpu user nice system idle iowait irq softirq steal: man 5 proc_stat
    ticks = [int(word) for word in _read("/proc/stat").split("\n")[0].split()[1:9]]
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ((sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK"),
            children.ru_utime + children.ru_stime)

"""The MPI launcher of this machine, for tests that start ranks by it or by hvdliterun."""

import os
import shutil
import subprocess

# Open MPI refuses to run as root otherwise; others do not read it.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

# What the launchers tell their ranks, as shells have it.
VARIABLES = ("RANK=${OMPI_COMM_WORLD_RANK-$PMI_RANK}; SIZE=${OMPI_COMM_WORLD_SIZE-$PMI_SIZE}; "
             "LOCAL_RANK=${OMPI_COMM_WORLD_LOCAL_RANK-$MPI_LOCALRANKID}; ")


# Of what the user has set for ranks, launchers and batch systems, and what a launcher has that runs
# this process.
_SETTINGS = ("OMP_", "KMP_", "GOMP_", "HVDLITE_", "SLURM_", "PBS_", "PE_", "PJM_", "MALLOC_",
             "LD_PRELOAD", "OMPI_", "PMIX_", "PRTE_")


def environment(**variables):
    """For a launcher: this process's with `variables`, and without settings of the user's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    return {**kept, **AS_ROOT, **variables}


def in_rank(script, shell="sh"):
    """The words of a shell that runs `script`, in which $RANK, $SIZE and $LOCAL_RANK are those of
    the rank that runs it."""
    return (shell, "-c", VARIABLES + script)


def kind():
    """"Open MPI", "Hydra", "" for one that is not known; None where there is no mpirun."""
    if shutil.which("mpirun") is None:
        return None
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
    return "Open MPI" if "Open MPI" in version else "Hydra" if "HYDRA" in version else ""

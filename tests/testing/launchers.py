"""The MPI launcher of this machine, for tests that start ranks with it or with hvdliterun."""

import os
import shutil
import subprocess

# Open MPI runs as root only with these variables; other launchers do not read them.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

# Shell code that reads the variables which the launchers set for their ranks.
VARIABLES = ("RANK=${OMPI_COMM_WORLD_RANK-$PMI_RANK}; SIZE=${OMPI_COMM_WORLD_SIZE-$PMI_SIZE}; "
             "LOCAL_RANK=${OMPI_COMM_WORLD_LOCAL_RANK-$MPI_LOCALRANKID}; ")


# Prefixes of variables that the user has set for ranks, launchers and batch systems, or that a
# launcher of this process has set.
_SETTINGS = ("OMP_", "KMP_", "GOMP_", "HVDLITE_", "SLURM_", "PBS_", "PE_", "PJM_", "MALLOC_",
             "LD_PRELOAD", "OMPI_", "PMIX_", "PRTE_")


def environment(**variables):
    """A launcher's environment: this process's with `variables`, without the user's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    return {**kept, **AS_ROOT, **variables}


def in_rank(script, shell="sh"):
    """The arguments of a shell that runs `script`. $RANK, $SIZE and $LOCAL_RANK in it are those
    of the rank that runs it."""
    return (shell, "-c", VARIABLES + script)


def kind():
    """"Open MPI", "Hydra", or "" for an unknown launcher; None if there is no mpirun."""
    if shutil.which("mpirun") is None:
        return None
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
    return "Open MPI" if "Open MPI" in version else "Hydra" if "HYDRA" in version else ""

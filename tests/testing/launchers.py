"""The MPI launcher of this machine, for tests that start ranks by it or by hvdliterun."""

import os
import shutil
import subprocess

# Open MPI refuses to run as root otherwise; others do not read it.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

# What the launchers tell their ranks, as shells have it.
VARIABLES = ("RANK=${OMPI_COMM_WORLD_RANK-$PMI_RANK}; SIZE=${OMPI_COMM_WORLD_SIZE-$PMI_SIZE}; "
             "LOCAL_RANK=${OMPI_COMM_WORLD_LOCAL_RANK-$MPI_LOCALRANKID}; ")


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

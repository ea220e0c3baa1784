"""Finds a Python interpreter for what is compared with."""

import shutil
import subprocess
import sys


def with_torch(wanted, program="import torch"):
    """An interpreter that runs `program`, which needs PyTorch, or None. `wanted`: the only one
    to try."""
    for python in [wanted] if wanted else [sys.executable, "/usr/bin/python3"]:
        if shutil.which(python) and subprocess.run(
                [python, "-c", program], capture_output=True).returncode == 0:
            return python
    return None

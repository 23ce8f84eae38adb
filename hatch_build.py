"""The build of a wheel. With BICA_PRECOMPILE, it carries kernels that are compiled for any processor of this kind.

    BICA_PRECOMPILE=.venv/bin/python pip wheel --no-deps -w dist .

names the Python that compiles them, one in which everything is installed that bica needs. Such a wheel is for that
version of Python and this platform; with another version of numba than the one there, kernels are compiled as usual.
"""

import os
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILE = """
import sys, sysconfig
from pathlib import Path
from bica.kernels.compiled import ship_all
from bica.ahead import warmup
warmup()
ship_all(Path(sys.argv[1]))
python = f"cp{sys.version_info.major}{sys.version_info.minor}"
print(f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}")
"""


class PrecompiledKernels(BuildHookInterface):
    """Adds the compiled kernels to a wheel, if asked to."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile with the Python that the environment names, and take what it wrote."""
        python = os.environ.get("BICA_PRECOMPILE")
        if self.target_name != "wheel" or version == "editable" or not python:
            return
        folder = Path(self.directory, "precompiled").resolve()
        places = {"PYTHONPATH": str(Path(self.root, "src")), "NUMBA_CACHE_DIR": str(folder.with_name("kernels"))}
        generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
        done = subprocess.run(  # noqa: S603 (who builds names the Python)
            [python, "-c", COMPILE, str(folder)],
            env=os.environ | places | generic,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        build_data["tag"], build_data["pure_python"] = done.stdout.split()[-1], False
        build_data["force_include"][str(folder)] = "bica/kernels/precompiled"

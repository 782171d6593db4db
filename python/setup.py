"""Builds the wheel. make links the extension, which setuptools only copies; `make wheel` has linked
it already and names it in PIPEC_MODULE."""

import os
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILT = "build/release/python/pipec/_pipec.abi3.so"


class ByMake(build_ext):
    def build_extension(self, extension):
        built = os.environ.get("PIPEC_MODULE") or os.path.join(ROOT, BUILT)
        if "PIPEC_MODULE" not in os.environ:
            jobs = f"-j{os.cpu_count() or 1}"
            command = ["make", "-sC", ROOT, jobs, f"PYTHON={sys.executable}", BUILT]
            subprocess.check_call(command, stdout=sys.stderr)
        target = self.get_ext_fullpath(extension.name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(built, target)


def version():
    with open(os.path.join(ROOT, "include", "pipec.h"), encoding="utf-8") as header:
        return re.search(r'PIPEC_VERSION +"([^"]+)"', header.read()).group(1)


setup(
    name="pipec",
    version=version(),
    description="A compiler for Pipe, a small language for warp-specialised GPU kernels",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=["pipec"],
    package_data={"pipec": ["py.typed", "*.pyi"]},
    ext_modules=[Extension("pipec._pipec", sources=[], py_limited_api=True)],
    cmdclass={"build_ext": ByMake},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    zip_safe=False,
)

"""Tests of the Python package, without a GPU: host arrays run on the emulator, arrays of a device
are fakes whose launches go to the stand-in for the driver (tests/standin)."""

import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "tests"))
os.chdir(ROOT)

_counts = {"passed": 0, "failed": 0, "skipped": 0}


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        _counts[report.outcome] += 1


def pytest_unconfigure(config):
    """The last line, as tools/test.sh reads it"""
    skipped = f", {_counts['skipped']} skipped" if _counts["skipped"] else ""
    print(f"{_counts['passed']} passed, {_counts['failed']} failed{skipped}")


@pytest.fixture(scope="session")
def example():
    """example(name, **statics): a kernel of examples/, compiled once"""
    import pipec

    kernels = {}

    def load(name, **statics):
        key = name, tuple(statics.items())
        if key not in kernels:
            kernels[key] = pipec.load(ROOT / "examples" / f"{name}.pipe", **statics)
        return kernels[key]

    return load

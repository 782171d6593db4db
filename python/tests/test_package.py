"""The package as users get it: installed from a clone into a virtual environment, and as a wheel."""

import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not os.environ.get("PIPEC_BUILD", "").endswith("build/release"),
    reason="the package is that of a release build")


def run(*command, **environment):
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True,
        env={**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_wheel(tmp_path):
    run("make", "wheel", f"PYTHON={sys.executable}", f"DIST={tmp_path}")
    (wheel,) = tmp_path.glob("pipec-*-cp311-abi3-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("__init__.py", "__init__.pyi", "_pipec.abi3.so", "py.typed", "torch.py", "kernels.py"):
        assert f"pipec/{name}" in names
    assert wheel.stat().st_size < 4 << 20
    run(sys.executable, "-m", "zipfile", "-t", str(wheel))


def test_build_needs_no_packages(tmp_path):
    """A virtual environment without setuptools, as those of Python 3.12 are"""
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"))
    python = str(tmp_path / "venv" / "bin" / "python")
    run(python, "-m", "pip", "uninstall", "-qy", "--disable-pip-version-check", "setuptools")
    run(python, "-m", "pip", "install", "-q", "--no-index", "--no-build-isolation",
        "--disable-pip-version-check", "./python")
    assert "kernel copy" in run(python, "-c", "import pipec; print(pipec.explain('P0306'))")


def test_venv(tmp_path):
    """As docs/python.md says"""
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--system-site-packages", str(venv))
    python = str(venv / "bin" / "python")
    run(python, "-m", "pip", "install", "-q", "--no-index", "--no-build-isolation",
        "--disable-pip-version-check", "./python")
    shown = run(python, "examples/torch/emulated.py")
    assert "gemm with BN = 128: right" in shown and "refused: axis 1 of `B`" in shown


def test_stubs():
    """Each public name has a stub."""
    import pipec

    stub = (ROOT / "python" / "pipec" / "__init__.pyi").read_text()
    for name in pipec.__all__:
        assert f"class {name}(" in stub or f"class {name}:" in stub or f"def {name}(" in stub
    for name in vars(pipec.Kernel):
        if not name.startswith("_"):
            assert f"    def {name}(" in stub

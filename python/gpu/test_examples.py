"""The examples and the documentation, on a GPU."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "tests"))


@pytest.mark.parametrize("name", ["model", "autograd", "emulated"])
def test_example(name):
    done = subprocess.run([sys.executable, ROOT / "examples" / "torch" / f"{name}.py"],
                          capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0


@pytest.mark.parametrize("page", ["docs/python.md", "docs/kernels.md", "README.md"])
def test_page(page, monkeypatch):
    import documents
    import torch

    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("TMPDIR", "/tmp"))
    A, B = (torch.randn(512, 256, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    documents.run(ROOT / page, ["python", "python,gpu"], {"A": A, "B": B})


def test_tutorial(tmp_path, monkeypatch):
    import documents

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    documents.run(ROOT / "docs" / "tutorial.md", ["python", "python,gpu"], {}, tmp_path)

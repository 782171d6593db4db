"""Texts that include others: where they are found, and that they are read once."""

import os
import pickle

import numpy as np
import pytest

import pipec

KERNEL = """include "lib/common.pipe";
kernel k(X: f32[N], out Y: f32[N]) for sm_90a {
    static T = 128 in {128, 256};
    ensures Y[i] == changed(X[i]);
    example N = 1000;
    grid (b: ceil(N, T));
    role work: 4 warps { for b in grid { Y[b*T + i] = changed(X[b*T + i]) for i in 0 .. T; } }
}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "common.pipe").write_text("fn changed(x: f32) -> f32 { return x + 1; }\n")
    (tmp_path / "k.pipe").write_text(KERNEL)
    return tmp_path


def result(kernel):
    return float(kernel(np.zeros(3, np.float32))[0])


def test_load_reads_the_folder_of_the_file(folder, monkeypatch):
    k = pipec.load(folder / "k.pipe")
    assert result(k) == 1 and k.source == KERNEL
    assert k.included == {"lib/common.pipe": "fn changed(x: f32) -> f32 { return x + 1; }\n"}
    monkeypatch.chdir(folder)
    assert result(pipec.load("k.pipe")) == 1


def test_a_text_needs_a_folder(folder):
    with pytest.raises(pipec.Unusable) as error:
        pipec.compile(KERNEL)
    assert error.value.diagnostics[0].code == "P0044"
    assert result(pipec.compile(KERNEL, folder=folder)) == 1
    assert result(pipec.compile(KERNEL, folder=str(folder), T=256)) == 1


def test_files_are_read_once(folder):
    k = pipec.load(folder / "k.pipe")
    (folder / "lib" / "common.pipe").write_text("fn changed(x: f32) -> f32 { return x + 2; }\n")
    assert result(k.using(T=256)) == 1
    assert result(pickle.loads(pickle.dumps(k))) == 1
    assert result(pipec.load(folder / "k.pipe")) == 2
    (folder / "lib" / "common.pipe").unlink()
    assert result(k.using(T=128)) == 1
    assert result(pickle.loads(pickle.dumps(k.using(T=256)))) == 1
    with pytest.raises(pipec.Unusable) as error:
        pipec.load(folder / "k.pipe")
    assert error.value.diagnostics[0].code == "P0041"


def test_a_fork_has_the_same_files(folder):
    k = pipec.load(folder / "k.pipe")
    (folder / "lib" / "common.pipe").unlink()
    child = os.fork()
    if child == 0:
        os._exit(0 if result(k) == 1 and result(k.using(T=256)) == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_places_name_their_file(folder):
    (folder / "lib" / "common.pipe").write_text("\nfn changed(x: f32) -> f32 { return y; }\n")
    with pytest.raises(pipec.Refused) as error:
        pipec.load(folder / "k.pipe")
    label, call = error.value.diagnostics[0].labels[:2]
    assert label.file == str(folder / "lib" / "common.pipe")
    assert (label.line, label.column) == (2, 36)
    assert call.file == str(folder / "k.pipe")
    assert f"{label.file}:2:36" in error.value.text

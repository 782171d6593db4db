"""Casts to 8-bit floats beside PyTorch's, and rows that the example quantises, on a GPU."""

import pathlib

import pytest
import torch

import pipec

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
GPU = torch.device("cuda:0")
CAST = """
kernel cast(X: f32[N], out Y: TYPE[N]) for sm_90a {
    ensures Y[i] == TYPE(X[i]);
    grid persistent (t: ceil(N, 1024));
    role work: 8 warps { for t in grid { Y[t*1024 + i] = TYPE(X[t*1024 + i]) for i in 0 .. 1024; } }
}
"""
TYPES = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
PART = 1 << 26


@pytest.mark.parametrize("name", TYPES)
def test_each_f32(name, tmp_path):
    path = tmp_path / "cast.pipe"
    path.write_text(CAST.replace("TYPE", name))
    kernel, kind = pipec.load(path), TYPES[name]
    most = torch.finfo(kind).max
    for start in range(-(1 << 31), 1 << 31, PART):
        bits = torch.arange(start, start + PART, device=GPU).to(torch.int32)
        X = bits.view(torch.float32)
        Y = kernel(X)
        assert Y.dtype == kind
        wanted = X.clamp(-most, most).to(kind)  # PyTorch gives NaN or infinity beyond; NaN stays
        nan = X.isnan()
        assert Y.float()[nan].isnan().all()
        assert torch.equal(Y.view(torch.uint8)[~nan], wanted.view(torch.uint8)[~nan])


def test_beyond():
    X = torch.tensor([448, 464, 464.00003, 1e9, float("inf")], device=GPU)
    assert X.to(torch.float8_e4m3fn).float().isnan().tolist() == [False, False, True, True, True]
    X = torch.tensor([57344, 61439, 61440, float("inf")], device=GPU)
    assert X.to(torch.float8_e5m2).float().isinf().tolist() == [False, False, True, True]


def test_quantised_rows():
    torch.manual_seed(1)
    X = torch.randn(1000, 4096, device=GPU, dtype=torch.bfloat16)
    Q, S = pipec.load(EXAMPLES / "quantize.pipe", D=4096, R=1)(X)
    top = X.float().abs().amax(1)
    torch.testing.assert_close(S, top / 448)
    assert Q.dtype == torch.float8_e4m3fn and (Q.float().abs().amax(1) == 448).all()
    torch.testing.assert_close(Q.float() * S[:, None], X.float(), rtol=0.0626, atol=1e-4)

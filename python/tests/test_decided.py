"""Statics that the tensors of a call decide: an extent, and the type of elements."""
import numpy as np
import pytest

import pipec

TEXT = """
kernel scale(X: T[M, D], W: f32[D], out Y: T[M, D]) for sm_90a {
    static T = f32 in {f32, f16, bf16};
    static D = 64 in {64, 128}, WARPS = 1 in {1, 2};
    requires D % 2 == 0;
    ensures Y[m, d] ~ X[m, d] * W[d] within 2 * eps(T);
    example M = 5;
    grid (m: M);
    role work: WARPS warps {
        for m in grid {
            for p in 0 .. ceil(D, 64) {
                Y[m, p*64 + j] = T(f32(X[m, p*64 + j]) * W[p*64 + j]) for j in 0 .. 64;
            }
        }
    }
}
"""


@pytest.fixture(scope="module")
def scale():
    return pipec.compile(TEXT)


def arrays(d, kind):
    made = np.random.default_rng(d)
    return (made.standard_normal((7, d)).astype(kind),
            made.standard_normal(d).astype(np.float32))


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("d", [64, 128, 100, 2, 64, 1000])
def test_each_extent_and_type(scale, d, kind):
    x, w = arrays(d, kind)
    y = scale(x, w)
    assert y.dtype == kind and y.shape == x.shape
    np.testing.assert_allclose(y.astype(np.float32), x.astype(np.float32) * w, 2e-3, 1e-3)
    out = np.empty_like(x)
    assert scale(x, w, Y=out) is out
    np.testing.assert_array_equal(out, y)


def test_bits_have_the_type_of_the_text():
    kernel = pipec.compile(TEXT.replace("T = f32 in", "T = bf16 in"))
    x = np.full((7, 100), 0x3F80, np.uint16)  # 1.0
    y = kernel(x, np.full(100, 2, np.float32))
    assert y.dtype == np.uint16 and (y == 0x4000).all()


def test_the_choice_and_the_verdict_are_those_of_the_tensors(scale):
    x, w = arrays(100, np.float16)
    chosen = scale.choose(x, w)
    assert set(chosen.statics) == {"WARPS"}
    assert scale.verify(x, w).startswith("right (all 700")


def test_a_value_of_the_caller_stays(scale):
    fixed = scale.using(D=128)
    x, w = arrays(64, np.float16)
    with pytest.raises(pipec.Unusable, match="P0604"):
        fixed(x, w)
    assert fixed(*arrays(128, np.float16)).dtype == np.float16


def test_untuned_takes_the_values_of_the_text():
    kernel = pipec.compile(TEXT, untuned=True)
    assert kernel(*arrays(64, np.float32)).shape == (7, 64)
    with pytest.raises(pipec.Unusable, match="P0604"):
        kernel(*arrays(128, np.float32))
    with pytest.raises(TypeError, match="`X` must have elements of f32"):
        kernel(*arrays(64, np.float16))


def test_what_no_kernel_takes_is_refused(scale):
    with pytest.raises(pipec.Unusable, match="cannot run with D=65"):
        scale(*arrays(65, np.float32))
    with pytest.raises(TypeError, match="`X` cannot have elements of float64: it may have"):
        scale(*arrays(64, np.float64))
    with pytest.raises(TypeError, match="`X` cannot have elements of i32: .* f32, f16, bf16"):
        scale(*arrays(64, np.int32))
    x, w = arrays(64, np.float32)
    with pytest.raises(pipec.Unusable, match="P0604"):
        scale(x, w[:62])
    with pytest.raises(ValueError, match="must have 2 axes"):
        scale(w, w)
    with pytest.raises(TypeError, match="`Y` must have elements of f32"):
        scale(x, w, Y=np.empty((7, 64), np.float16))
    with pytest.raises(TypeError, match="`W` must have elements of f32"):
        scale(x, w.astype(np.float64))

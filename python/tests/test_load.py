"""Compiling: options, statics, what a kernel says of itself, diagnostics as exceptions."""

import copy
import inspect
import os
import pickle
import pydoc
import subprocess
import sys

import numpy as np
import pytest

import pipec

SCALE = """kernel scale(X: f32[N], out Y: f32[N], a: f32) for sm_90a {
    static T = 1024 in {512, 1024};
    ensures Y[i] == a * X[i];
    grid (t: ceil(N, T));
    role work: 4 warps { for t in grid { Y[t*T + i] = a * X[t*T + i] for i in 0 .. T; } }
}
"""
TWO = SCALE + SCALE.replace("kernel scale", "kernel other")


def test_facts(example):
    gemm = example("gemm")
    assert gemm.__name__ == "gemm"
    assert gemm.signature.startswith("kernel gemm(A: bf16[M, K], B: bf16[N, K], out C: bf16[M, N])")
    assert [(p.name, p.mode, p.extents) for p in gemm.parameters] == [
        ("A", "in", ("M", "K")), ("B", "in", ("N", "K")), ("C", "out", ("M", "N"))]
    assert gemm.statics == {"BM": 128, "BN": 256, "BK": 64, "STAGES": 3}
    assert gemm.choices["BN"] == (128, 192, 256) and "BK" not in gemm.choices
    assert any("K * 2 % 16" in text for text, why in gemm.preconditions)
    assert gemm.ensures == ("C[i, j] ~ sum[k] A[i, k] * B[j, k] within 1e-2",)
    assert str(inspect.signature(gemm)) == "(A, B, *, C=None)"
    assert "gemm(A: bf16[M, K]" in repr(gemm) and "BM=128" in repr(gemm)


def test_help(example):
    text = pydoc.plain(pydoc.render_doc(example("gemm")))
    for part in ("kernel gemm(A: bf16[M, K]", "K * 2 % 16 == 0", "BN = 256 in {128, 192, 256}",
                 "C[i, j] ~ sum[k] A[i, k] * B[j, k] within 1e-2"):
        assert part in text


def test_texts(example):
    gemm = example("gemm")
    assert "shared memory" in gemm.report() and "\\n" not in repr(gemm.report())
    assert ".entry gemm" in gemm.ptx
    assert gemm.manifest["kernel"] == "gemm"


def test_source_and_path(example, tmp_path):
    path = tmp_path / "scale.pipe"
    path.write_text(SCALE)
    scale = pipec.load(path)
    for kernel in scale, scale.using(T=512), pickle.loads(pickle.dumps(scale)), scale.on():
        assert kernel.source == SCALE and kernel.path == str(path)
    assert pipec.compile(SCALE, name="mine.pipe").path is None
    assert pipec.load("kernels:linear").path == "kernels:linear"


def test_no_grid(example):
    with pytest.raises(TypeError, match=r"gemm takes no grid in brackets.*call gemm\(A, B\)"):
        example("gemm")[132, 1](1, 2)
    with pytest.raises(TypeError, match="not iterable"):
        iter(example("gemm"))


def test_statics():
    scale = pipec.compile(SCALE, T=512)
    assert scale.statics == {"T": 512} and scale.using(T=1024).statics == {"T": 1024}
    assert scale.using(T=1024) is scale.using(T=1024)
    with pytest.raises(pipec.Unusable, match="no static `S`"):
        scale.using(S=1)


def test_several_kernels():
    assert pipec.compile(TWO, "other").__name__ == "other"
    assert pipec.compile(TWO, kernel="scale").__name__ == "scale"
    with pytest.raises(pipec.Error):
        pipec.compile(TWO)
    with pytest.raises(pipec.Error, match="third"):
        pipec.compile(TWO, "third")


VARIANTS = """kernel scale(X: f32[N], out Y: f32[N], a: f32) for sm_90a {
    ensures Y[i] == a * X[i];
    variant small {
        static T = 128;
        grid (t: ceil(N, T));
        role work: 4 warps { for t in grid { Y[t*T + i] = a * X[t*T + i] for i in 0 .. T; } }
    }
    variant large {
        static T = 1024, ROUNDS = 2;
        grid persistent (t: ceil(N, T));
        role work: 4 warps {
            for t in grid { Y[t*T + i] = a * X[t*T + i] for i in 0 .. T; }
        }
    }
}
"""


def test_variants():
    small = pipec.compile(VARIANTS, variant="small", T=256)
    assert small.__name__ == "scale:small" and small.statics == {"T": 256}
    assert small.signature.startswith("kernel scale(X: f32[N], ")
    large = small.using(variant="large", ROUNDS=3)
    assert large.statics == {"T": 1024, "ROUNDS": 3}
    assert large is small.using(variant="large", ROUNDS=3)
    assert large.using(T=512).__name__ == "scale:large"
    assert pipec.compile(VARIANTS, "scale:large").__name__ == "scale:large"
    x = np.arange(300, dtype=np.float32)
    assert (small(x, 2.0) == 2 * x).all() and (large(x, 2.0) == 2 * x).all()
    assert pickle.loads(pickle.dumps(large)).__name__ == "scale:large"
    with pytest.raises(pipec.Unusable, match="unknown"):
        small.using(variant="medium")


def test_choice():
    scale = pipec.compile(VARIANTS)
    x = np.arange(300, dtype=np.float32)
    assert scale.__name__ == "scale" and (scale(x, 2.0) == 2 * x).all()
    choice = scale.choose(x, 2.0)
    assert choice.variant in ("small", "large") and choice.statics == {} and not choice.tuned
    assert choice.candidates == 2 and choice.machine == "h200" and choice.predicted > 0
    assert scale.using(variant="large").choose(x, 2.0) is None
    only = VARIANTS.replace("static T = 128;", "static T = 128 in {128, 256}; requires N < 200;")
    assert pipec.compile(only).choose(x, 2.0).variant == "large"
    none = only.replace("static T = 1024,", "requires N > 400; static T = 1024,")
    with pytest.raises(pipec.Unusable, match="no variant of kernel `scale` can run"):
        pipec.compile(none)(x, 2.0)
    assert (pipec.compile(only, untuned=True)(x, 2.0) == 2 * x).all()
    assert pickle.loads(pickle.dumps(scale)).choose(x, 2.0) == choice


def test_types_as_statics():
    text = SCALE.replace("f32[N]", "E[N]").replace("static T", "static E = f32 in {f32, f16}, T")
    text = text.replace("a * X[t*T + i]", "E(a * X[t*T + i])").replace("== a", "~ a")
    text = text.replace("X[i];", "X[i] within eps(E);")
    scale = pipec.compile(text, E="f16")
    assert scale.statics == {"E": "f16", "T": 1024} and scale.choices["E"] == ("f32", "f16")
    assert scale.parameters[0].type == "f16" and scale.using(E="f32").parameters[0].type == "f32"
    x = np.arange(300, dtype=np.float16)
    assert (scale(x, 2.0) == 2 * x).all() and "within eps(E)" in scale.ensures[0]
    assert pickle.loads(pickle.dumps(scale)).statics["E"] == "f16"
    with pytest.raises(pipec.Unusable, match="wrong type"):
        scale.using(E=7)
    with pytest.raises(pipec.Unusable, match="`f128` is no number or element type"):
        scale.using(E="f128")


def test_numbers_of_statics():
    numpy = pytest.importorskip("numpy")
    assert pipec.compile(SCALE, T=numpy.int64(512)).statics == {"T": 512}
    for wrong in ("512", None, [512]):
        with pytest.raises(TypeError, match="the static `T` must be a number"):
            pipec.compile(SCALE).using(T=wrong)


def test_copies():
    scale = pipec.compile(SCALE, T=512)
    assert pickle.loads(pickle.dumps(scale)).statics == {"T": 512}
    assert copy.copy(scale) is scale and copy.deepcopy([scale])[0] is scale
    half = pickle.loads(pickle.dumps(scale.on(multiprocessors=66)))
    assert half._launch[:3] == (None, 66, None)
    with pytest.raises(TypeError, match="scale: a kernel with a stream"):
        pickle.dumps(scale.on(7))


def test_on():
    """What on() says also holds for other statics."""
    scale = pipec.compile(SCALE)
    assert scale.on(7, programmatic=True).using(T=512)._launch[:3] == (7, 0, True)
    assert scale.using(T=512)._launch[:3] == (None, 0, None)
    with pytest.raises(ValueError, match="multiprocessors is -1"):
        scale.on(multiprocessors=-1)
    assert scale.emulated(seconds=3).on(7).emulated(progress=False)._launch == (7, 0, None, 0, False)
    with pytest.raises(ValueError, match="seconds is -1"):
        scale.emulated(seconds=-1)


def test_texts_that_are_none(tmp_path):
    with pytest.raises(TypeError, match="not bytes"):
        pipec.compile(b"kernel")
    (tmp_path / "latin.pipe").write_bytes(b"// caf\xe9")
    with pytest.raises(ValueError, match="latin.pipe is not a text in UTF-8"):
        pipec.load(tmp_path / "latin.pipe")


def test_diagnostics():
    with pytest.raises(pipec.Refused) as caught:
        pipec.compile(SCALE.replace("a * X[t*T", "b * X[t*T"), name="wrong.pipe")
    first = caught.value.diagnostics[0]
    assert first.code == "P0100" and first.severity == "error" and "`b`" in first.message
    assert first.line == 5 and first.labels[0].column > 1
    assert "wrong.pipe:5:" in str(caught.value) and "\x1b" not in str(caught.value)
    assert "\x1b[" in caught.value.coloured
    assert caught.value._repr_html_().startswith("<pre>") and "<span" in caught.value._repr_html_()
    assert any("\x1b[" in line for line in caught.value._render_traceback_())


def test_unusable_is_a_value_error():
    assert issubclass(pipec.Unusable, ValueError) and issubclass(pipec.Unusable, pipec.Error)


def test_warning():
    text = SCALE.replace("for sm_90a {", "for sm_90a { // allow P0149")
    with pytest.warns(pipec.CompileWarning, match="P0030"):
        scale = pipec.compile(text)
    assert {d.severity for d in scale.diagnostics} == {"warning"}
    with pytest.raises(pipec.Refused, match="P0030"):
        pipec.compile(text, deny="warnings")


SCATTER = """
kernel scatter(X: f32[R, 64], To: i32[R], out Y: f32[R, 64]) for sm_90a {
    grid persistent (r: R);
    pipe rows[2] load -> put { x: f32[64]; }
    role load: 1 warp { for r in grid { produce <rows> as s { s.x[d] = X[r, d]; } } }
    role put: 1 warp { for r in grid { consume <rows> as s { Y[To[r], d] = 1 * s.x[d]; } } }
}
"""


def scatter(**options):
    with pytest.warns(pipec.CompileWarning, match="(?s)P0237.*is accepted") as caught:
        made = pipec.compile(SCATTER, **options)
    assert len(caught) == 1 and caught[0].filename == __file__
    return made


def test_incomplete():
    with pytest.raises(pipec.Incomplete, match=r'load\(.., accept=\["P0237"\]\)') as caught:
        pipec.compile(SCATTER)
    assert "accept=" in caught.value.coloured
    with pytest.raises(pipec.Incomplete, match="P0237"):  # another one, as with `deny`
        pipec.compile(SCATTER, accept="P0461")


def test_notes_beside_a_warning_are_one_line():
    text = SCATTER.replace("X: f32[R, 64]", "X: f32[R, 64], From: i32[R]")
    text = text.replace("= X[r, d]", "= X[From[r], d]")
    with pytest.warns(pipec.CompileWarning) as caught:
        kernel = pipec.compile(text, accept=True)
    assert [d.code for d in kernel.diagnostics if d.severity == "note"] == ["P0242", "P0242"]
    said = str(caught[0].message)
    assert "warning[P0237]" in said and "note[" not in said and said.count("P0242") == 1
    lines = ", ".join(str(d.line) for d in kernel.diagnostics if d.severity == "note")
    assert f"notes, in `kernel.diagnostics`: P0242 at lines {lines}\n" in said


def test_accepted():
    X = np.arange(192, dtype=np.float32).reshape(3, 64)
    for accept in True, "P0237", ["P0461", "P0237"]:
        Y = scatter(accept=accept)(X, np.array([2, 0, 1], np.int32))
        assert (Y == X[[1, 2, 0]]).all()
    with pytest.raises(pipec.Refused, match="P0751"):  # what was not proved is still found
        scatter(accept=True)(X, np.array([2, 0, 2], np.int32))
    with pytest.warns(pipec.CompileWarning):
        again = pickle.loads(pickle.dumps(scatter(accept=True)))
    assert again.diagnostics[0].severity == "warning"


def test_never_accepted():
    with pytest.raises(pipec.Refused, match="P0100"):
        pipec.compile(SCATTER.replace("1 *", "zz *"), accept=True)
    with pytest.raises(pipec.Refused, match="P0237"):
        pipec.compile(SCATTER, accept=True, deny="P0237")
    with pytest.raises(pipec.Unusable, match="P0916.*`P0100` is an error and cannot be accepted"):
        pipec.compile(SCATTER, accept="P0100")
    with pytest.raises(pipec.Unusable, match="P0916.*`P0810` is a warning"):
        pipec.compile(SCATTER, accept="P0810")
    with pytest.raises(pipec.Unusable, match="P0916.*`P9999` is not a code"):
        pipec.compile(SCATTER, accept="P9999")


def test_missing_file():
    with pytest.raises(FileNotFoundError):
        pipec.load("no-such.pipe")


def test_shipped():
    """Without a file, in any folder"""
    low = pipec.load("kernels:linear", variant="low")
    assert low.__name__ == "linear:low" and "for sm_90a" in low.signature
    assert pickle.loads(pickle.dumps(low)).signature == low.signature
    with pytest.raises(FileNotFoundError, match="no shipped kernel linaer.*kernels:linear"):
        pipec.load("kernels:linaer")


def test_explain():
    assert "P0306" in pipec.explain("P0306")
    with pytest.raises(KeyError):
        pipec.explain("P9999")


def test_colours_of_a_terminal():
    """An exception that nothing catches is coloured on a terminal, and only there."""
    program = f"import pipec\npipec.compile({SCALE.replace('a * X[t*T', 'b * X[t*T')!r})\n"
    import pty

    try:
        outer, inner = pty.openpty()
    except OSError as lack:
        pytest.skip(f"no pseudo-terminal: {lack}")
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    done = subprocess.run([sys.executable, "-c", program], stderr=inner, env=environment)
    os.close(inner)
    shown = os.read(outer, 1 << 16)
    os.close(outer)
    assert done.returncode == 1 and b"\x1b[" in shown and b"P0100" in shown
    done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, env=environment)
    assert b"\x1b[" not in done.stderr and b"P0100" in done.stderr


def test_import_time():
    """Without NumPy and without PyTorch, and quickly"""
    program = """import sys, time
start = time.process_time()
import pipec
took = time.process_time() - start
assert "numpy" not in sys.modules and "torch" not in sys.modules
print(took)
"""
    times = [float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(3)]
    assert min(times) < 0.05 or "asan" in os.environ.get("PIPEC_BUILD", "")

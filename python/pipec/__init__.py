"""pipec compiles Pipe, a small language for warp-specialised GPU kernels.

    import pipec
    gemm = pipec.load("gemm.pipe")
    C = gemm(A, B)      # PyTorch, CuPy and JAX: on the GPU; NumPy: on the emulator

docs/python.md describes the package.
"""

from ._arrays import bf16, f32
from ._bench import Bench, Timing, bench
from ._errors import (
    CompileWarning,
    CompilerBug,
    Diagnostic,
    Error,
    Incomplete,
    Label,
    Refused,
    Unusable,
)
from ._kernel import (
    Choice, Kernel, Parameter, Run, Trial, Tuning, compile, explain, load, load_bundle, load_image,
)
from ._pipec import version as __version__

__all__ = [
    "Bench", "Choice", "CompileWarning", "CompilerBug", "Diagnostic", "Error", "Incomplete",
    "Kernel", "Label", "Parameter", "Refused", "Run", "Timing", "Trial", "Tuning", "Unusable",
    "bench", "bf16", "compile", "explain", "f32", "load", "load_bundle", "load_image",
]


def __getattr__(name):
    if name in ("kernels", "torch"):  # PyTorch is imported only where it is used
        import importlib

        return importlib.import_module(f"pipec.{name}")
    raise AttributeError(f"module 'pipec' has no attribute '{name}'")

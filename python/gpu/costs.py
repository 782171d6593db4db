"""Host costs of a call, in microseconds: the time of Python and C until a call returns, while the
GPU works. Medians of batches; the GPU is waited for between the batches, so that its queue never
is full. Kernels are small, so that the GPU is faster than the host."""

import ctypes
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import pipec
import pipec.torch

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
BATCHES, CALLS = 50, 200


def cost(call):
    for _ in range(100):
        call()
    times = []
    for _ in range(BATCHES):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS)
    return 1e6 * statistics.median(times)


def bare():
    """cuLaunchKernelEx in a loop of C"""
    with tempfile.TemporaryDirectory() as folder:
        built = pathlib.Path(folder) / "bare.so"
        try:
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", built, HERE / "bare.c", "-ldl"],
                           check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        library = ctypes.CDLL(str(built))
        library.bare.restype = ctypes.c_double
        return 1e6 * library.bare(None, BATCHES, CALLS)


def triton_add():
    try:
        import triton_kernel
    except ImportError:
        return None
    x = torch.zeros(1024, device="cuda")
    y = torch.zeros_like(x)
    return lambda: triton_kernel.add[(1,)](x, y, 1024, BLOCK=1024)


def empty_loop():
    return cost(lambda: None)


class Old:
    """A tensor without DLPack's C functions, as of PyTorch before 2.10"""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **named):
        return self.tensor.__dlpack__(**named)


IMPORT = "import time; t = time.perf_counter(); import pipec; print(time.perf_counter() - t)"
LOAD = """import sys, time, torch, pipec
torch.zeros(1, device="cuda")
t = time.perf_counter()
gemm = pipec.load(sys.argv[1])
compiled = time.perf_counter() - t
facts = gemm.prepare(0)
print(f"{1e3 * compiled:.1f} ms, then loading {1e3 * facts['load_seconds']:.1f} ms by "
      f"{facts['loaded_by']}")
"""


def once():
    """What happens once in a process: the import, and loading with and without ptxas, in a process
    that finds empty caches and in the next one"""
    took = min(float(subprocess.check_output([sys.executable, "-c", IMPORT])) for _ in range(3))
    print(f"import pipec: {1e3 * took:.1f} ms")
    for path in (os.environ["PATH"], ""):
        with tempfile.TemporaryDirectory() as home:
            caches = dict(HOME=home, XDG_CACHE_HOME=home, CUDA_CACHE_PATH=home, PATH=path)
            for process in ("first", "second"):
                shown = subprocess.check_output(
                    [sys.executable, "-c", LOAD, str(EXAMPLES / "gemm.pipe")], text=True,
                    env={**os.environ, **caches})
                print(f"compiling gemm.pipe, {process} process: {shown}", end="")


def main():
    gemm = pipec.load(EXAMPLES / "gemm.pipe")
    axpy = pipec.load(EXAMPLES / "axpy.pipe")
    op = pipec.torch.operator("costs::gemm", gemm)
    A, B = (torch.zeros(64, 64, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    C = torch.empty(64, 64, device="cuda", dtype=torch.bfloat16)
    X, Y = torch.zeros(1024, device="cuda"), torch.zeros(1024, device="cuda")
    old = Old(A), Old(B), Old(C)
    rows = [
        ("cuLaunchKernelEx in C", bare),
        ("an empty lambda", empty_loop),
        ("axpy(X, Y, 2.0), in place", lambda: cost(lambda: axpy(X, Y, 2.0))),
        ("gemm(A, B, C=out)", lambda: cost(lambda: gemm(A, B, C=C))),
        ("gemm(A, B)", lambda: cost(lambda: gemm(A, B))),
        ("operator(A, B)", lambda: cost(lambda: op(A, B))),
        ("gemm(A, B, C=out) by __dlpack__", lambda: cost(lambda: gemm(*old[:2], C=old[2]))),
        ("torch.mm(A, B, out=C)", lambda: cost(lambda: torch.mm(A, B, out=C))),
        ("torch.mm(A, B)", lambda: cost(lambda: torch.mm(A, B))),
        ("torch.empty(64, 64)", lambda: cost(
            lambda: torch.empty((64, 64), dtype=torch.bfloat16, device="cuda"))),
        ("A.new_empty(64, 64)", lambda: cost(lambda: A.new_empty((64, 64)))),
        ("A.is_neg()", lambda: cost(A.is_neg)),
        ("A.requires_grad", lambda: cost(lambda: A.requires_grad)),
    ]
    add = triton_add()
    if add is not None:
        rows.append(("a kernel of Triton, 2 tensors", lambda: cost(add)))
    once()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, pipec {pipec.__version__}")
    for name, measure in rows:
        took = measure()
        print(f"{name:34} " + ("not measured" if took is None else f"{took:7.2f} us"))


if __name__ == "__main__":
    main()

"""Host costs of a call, in microseconds: the time of Python and C until a call returns, while the
GPU works. The rows take turns: medians over batches, each a mean of calls; the GPU is waited for
between the batches, so that its queue never is full. Kernels are small, so that the GPU is faster
than the host."""

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
import pipec.kernels as k
import pipec.torch

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
BATCHES, CALLS = 50, 200
BARE_C = "cuLaunchKernelEx in a loop of C"
BARE = "cuLaunchKernelEx in this loop"


def seconds(call):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS


class Method(ctypes.Structure):
    """PyMethodDef"""

    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p),
                ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


METH_NOARGS = 4


def method_of(function):
    """A C function as a builtin of Python without arguments, the cheapest call that Python has"""
    method = Method(b"bare", ctypes.cast(function, ctypes.c_void_p), METH_NOARGS, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object,
                                                   ctypes.c_void_p]
    method_of.kept = method
    return new(ctypes.addressof(method), None, None)


def bare():
    """cuLaunchKernelEx alone: a function that measures a batch in a loop of C, and one that
    launches once; None: no compiler"""
    with tempfile.TemporaryDirectory() as folder:
        built = pathlib.Path(folder) / "bare.so"
        try:
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", built, HERE / "bare.c", "-ldl"],
                           check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        library = ctypes.CDLL(str(built))
    library.bare.restype = ctypes.c_double
    if library.bare_open() != 0:
        return None
    return (lambda: library.bare(CALLS)), method_of(library.bare_once)


def measure(rows):
    """The seconds of each batch, by row: the rows take turns"""
    times = {name: [] for name in rows}
    for batch in range(BATCHES + 1):
        for name, timed in rows.items():
            took = timed()
            if batch > 0:  # the first one warms up
                times[name].append(took)
    return times


def triton_add():
    try:
        import triton_kernel
    except ImportError:
        return None
    x = torch.zeros(1024, device="cuda")
    y = torch.zeros_like(x)
    return lambda: triton_kernel.add[(1,)](x, y, 1024, BLOCK=1024)


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
    for without in ({}, {"PIPEC_PTXAS": ""}):
        with tempfile.TemporaryDirectory() as home:
            caches = dict(HOME=home, XDG_CACHE_HOME=home, CUDA_CACHE_PATH=home, **without)
            for process in ("first", "second"):
                shown = subprocess.check_output(
                    [sys.executable, "-c", LOAD, str(EXAMPLES / "gemm.pipe")], text=True,
                    env={**os.environ, **caches})
                print(f"compiling gemm.pipe, {process} process: {shown}", end="")


def with_gradient(linear, x, weight):
    """Forward, and the gradient of the weight"""
    dy = torch.zeros(x.shape[0], weight.shape[0], device=x.device, dtype=x.dtype)
    return lambda: torch.autograd.grad(linear(x, weight), weight, dy)


def optimizer(make, count=64):
    """The time of a step of AdamW over many small weights, by their number"""
    weights = [torch.zeros(64, 64, device="cuda").requires_grad_() for _ in range(count)]
    for p in weights:
        p.grad = torch.zeros_like(p)
    step = make(weights).step

    def timed():
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(4):
            step()
        return (time.perf_counter() - start) / 4 / count

    return timed


def main():
    gemm = pipec.load(EXAMPLES / "gemm.pipe")
    axpy = pipec.load(EXAMPLES / "axpy.pipe")
    op = pipec.torch.operator("costs::gemm", gemm)
    A, B = (torch.zeros(64, 64, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    C = torch.empty(64, 64, device="cuda", dtype=torch.bfloat16)
    bias = torch.zeros(64, device="cuda", dtype=torch.bfloat16)
    W = B.clone().requires_grad_()
    X, Y = torch.zeros(1024, device="cuda"), torch.zeros(1024, device="cuda")
    old = Old(A), Old(B), Old(C)
    calls = {
        "an empty lambda": lambda: None,
        "axpy(X, Y, 2.0), in place": lambda: axpy(X, Y, 2.0),
        "gemm(A, B, C=out)": lambda: gemm(A, B, C=C),
        "gemm(A, B)": lambda: gemm(A, B),
        "operator(A, B)": lambda: op(A, B),
        "gemm(A, B, C=out) by __dlpack__": lambda: gemm(*old[:2], C=old[2]),
        "kernels.linear(A, B, out=C)": lambda: k.linear(A, B, out=C),
        "kernels.linear(A, B)": lambda: k.linear(A, B),
        "kernels.linear(A, B, bias)": lambda: k.linear(A, B, bias),
        "kernels.softmax(A)": lambda: k.softmax(A),
        "kernels.linear(A, W), with gradient": with_gradient(k.linear, A, W),
        "F.linear(A, W), with gradient": with_gradient(torch.nn.functional.linear, A, W),
        "F.linear(A, B, bias)": lambda: torch.nn.functional.linear(A, B, bias),
        "torch.softmax(A, -1)": lambda: torch.softmax(A, -1),
        "torch.mm(A, B, out=C)": lambda: torch.mm(A, B, out=C),
        "torch.mm(A, B)": lambda: torch.mm(A, B),
        "kernels.rms_norm(A, bias)": lambda: k.rms_norm(A, 64, bias, 1e-6),
        "torch.empty(64, 64)": lambda: torch.empty((64, 64), dtype=torch.bfloat16, device="cuda"),
        "the same by Inductor's function": lambda: torch._C._dynamo.guards._empty_strided_cuda(
            (64, 64), (64, 1), torch.bfloat16),
        "A.is_neg()": A.is_neg,
        "A.requires_grad": lambda: A.requires_grad,
    }
    add = triton_add()
    if add is not None:
        calls["a kernel of Triton, 2 tensors"] = add
    rows = {name: (lambda call=call: seconds(call)) for name, call in calls.items()}
    rows["kernels.AdamW, a weight of 64"] = optimizer(k.AdamW)
    rows["AdamW of PyTorch, fused, the same"] = optimizer(
        lambda weights: torch.optim.AdamW(weights, fused=True))
    alone = bare()
    if alone is not None:
        in_c, launch = alone
        rows = {BARE_C: in_c, BARE: lambda: seconds(lambda: launch()), **rows}
    once()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, pipec {pipec.__version__}")
    times = measure(rows)
    for name, took in times.items():
        line = f"{name:36} {1e6 * statistics.median(took):7.2f} us"
        if alone is not None and name not in (BARE, BARE_C):
            above = statistics.median(x - y for x, y in zip(took, times[BARE]))
            line += f", {1e6 * above:6.2f} above {BARE}"
        print(line)


if __name__ == "__main__":
    main()

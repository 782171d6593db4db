"""Host costs of an operation in microseconds: called directly, and in code of torch.compile. That of
compiled code is the difference of two functions with 8 and 40 operations in a row, by 32. Tensors are
small, so that the GPU is faster than the host."""

import statistics
import time

import torch

import pipec.kernels as k

ROUNDS, CALLS, FEW, MANY = 15, 30, 8, 40
N = 64


def microseconds(run):
    """Medians of rounds; the GPU is waited for between them, so that its queue never is full"""
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            run()
        times.append((time.perf_counter() - start) / CALLS)
    return 1e6 * statistics.median(times[2:])


def chain(operation, count):
    def run(x):
        for _ in range(count):
            x = operation(x)
        return x

    return run


def compiled(operation, x):
    torch._dynamo.reset()
    took = {}
    for count in (FEW, MANY):
        run = torch.compile(chain(operation, count), fullgraph=True)
        took[count] = microseconds(lambda: run(x))
    return (took[MANY] - took[FEW]) / (MANY - FEW)


def main():
    x, weight = (torch.zeros(N, N, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    scale = torch.ones(N, device="cuda", dtype=torch.bfloat16)
    rows = {
        "k.linear(x, w)": lambda x: k.linear(x, weight),
        "k.linear(x, w, scale)": lambda x: k.linear(x, weight, scale),
        "k.matmul(x, w)": lambda x: k.matmul(x, weight),
        "k.softmax(x)": k.softmax,
        "k.rms_norm(x, w)": lambda x: k.rms_norm(x, N, scale, 1e-6),
        "k.rms_norm(x, w, residual)": lambda x: k.rms_norm(x, N, scale, 1e-6, residual=x)[0],
        "k.swiglu(x, x)": lambda x: k.swiglu(x, x),
        "torch.mm(x, w)": lambda x: torch.mm(x, weight),
        "torch.addmm(scale, x, w)": lambda x: torch.addmm(scale, x, weight),
    }
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print(f"{'':28} {'direct':>8} {'compiled':>8}")
    for name, operation in rows.items():
        with torch.no_grad():
            direct = microseconds(lambda: chain(operation, MANY)(x)) / MANY
            print(f"{name:28} {direct:8.2f} {compiled(operation, x):8.2f}", flush=True)


if __name__ == "__main__":
    main()

"""A small model with two kernels of pipec as operators: rmsnorm and the products of two linear
layers. Its results are compared with PyTorch's own operators, and both are timed: as they are
(eager), with torch.compile, and as a CUDA graph. Needs a Hopper GPU.

    python examples/torch/model.py
"""

import pathlib

import torch
import torch.nn.functional as F

import pipec
import pipec.torch

EXAMPLES = pathlib.Path(__file__).resolve().parents[1]
ROWS, D, HIDDEN, EPS = 4096, 1024, 4096, 1e-6

gemm = pipec.torch.operator("examples::gemm", pipec.load(EXAMPLES / "gemm.pipe"))
rmsnorm = pipec.torch.operator("examples::rmsnorm", pipec.load(EXAMPLES / "rmsnorm.pipe", D=D))


class Block(torch.nn.Module):
    """x + W2 gelu(W1 rmsnorm(x)), with kernels of pipec or without"""

    def __init__(self, pipes):
        super().__init__()
        self.pipes = pipes
        make = dict(device="cuda", dtype=torch.bfloat16)
        self.scale = torch.nn.Parameter(torch.ones(D, **make), requires_grad=False)
        self.first = torch.nn.Parameter(torch.randn(HIDDEN, D, **make) / 32, requires_grad=False)
        self.second = torch.nn.Parameter(torch.randn(D, HIDDEN, **make) / 64, requires_grad=False)

    def forward(self, x):
        if self.pipes:
            return x + gemm(F.gelu(gemm(rmsnorm(x, self.scale, EPS), self.first)), self.second)
        normal = F.rms_norm(x, (D,), self.scale, EPS)
        return x + F.linear(F.gelu(F.linear(normal, self.first)), self.second)


def captured(run, x):
    """`run` as a CUDA graph"""
    run(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run(x)
    return graph.replay


def microseconds(call, calls=50):
    for _ in range(10):
        call()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        call()
    end.record()
    torch.cuda.synchronize()
    return 1e3 * start.elapsed_time(end) / calls


def main():
    torch.manual_seed(0)
    pipes, plain = Block(pipes=True), Block(pipes=False)
    plain.load_state_dict(pipes.state_dict())
    x = torch.randn(ROWS, D, device="cuda", dtype=torch.bfloat16)
    wanted = plain(x)
    for name, model in (("PyTorch", plain), ("pipec", pipes)):
        compiled = torch.compile(model, fullgraph=True)
        for way, run in (("eager", model), ("torch.compile", compiled)):
            error = (run(x).float() - wanted.float()).abs().max().item()
            assert error < 0.1, error
            print(f"{name:8} {way:14} {microseconds(lambda: run(x)):7.1f} us, as a graph "
                  f"{microseconds(captured(run, x)):7.1f} us, largest difference {error:.3f}")


if __name__ == "__main__":
    main()

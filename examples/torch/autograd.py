"""A linear layer whose forward and backward are kernels of pipec, in the two ways that PyTorch has:
an autograd function, and an operator with a backward, which torch.compile takes too. The gradients
are compared with those of PyTorch's own product. Needs a Hopper GPU.

    python examples/torch/autograd.py
"""

import pathlib

import torch

import pipec
import pipec.torch

EXAMPLES = pathlib.Path(__file__).resolve().parents[1]

nt = pipec.load(EXAMPLES / "gemm_nt.pipe")  # C = A B^T
# operators, since torch.compile traces the backward too
nn = pipec.torch.operator("examples::nn", pipec.load(EXAMPLES / "gemm_nn.pipe"))  # C = A B
tn = pipec.torch.operator("examples::tn", pipec.load(EXAMPLES / "gemm_tn.pipe"))  # C = A^T B


def gradients(x, weight, grad):
    grad = grad.contiguous()
    return nn(grad, weight), tn(grad, x)


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return nt(x, weight)

    @staticmethod
    def backward(ctx, grad):
        return gradients(*ctx.saved_tensors, grad)


def backward(ctx, grad):
    return gradients(*ctx.saved_tensors, grad)


linear = pipec.torch.operator("examples::linear", nt, backward=backward)


def train(product, x, weight, target):
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    loss = (torch.relu(product(x, weight)) - target).float().square().mean()
    loss.backward()
    return x.grad, weight.grad


def main():
    torch.manual_seed(0)
    make = dict(device="cuda", dtype=torch.bfloat16)
    x, weight = torch.randn(512, 256, **make), torch.randn(1024, 256, **make) / 16
    target = torch.randn(512, 1024, **make)
    wanted = train(lambda a, b: a @ b.T, x, weight, target)
    compiled = torch.compile(linear, fullgraph=True)
    for name, product in (("autograd function", Linear.apply), ("operator", linear),
                          ("operator with torch.compile", compiled)):
        got = train(product, x, weight, target)
        errors = [((g - w).float().norm() / w.float().norm()).item() for g, w in zip(got, wanted)]
        print(f"{name:28} differs by {errors[0]:.1e} in x, {errors[1]:.1e} in the weight")
        assert max(errors) < 2e-2


if __name__ == "__main__":
    main()

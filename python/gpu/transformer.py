"""A small transformer whose products, norms, softmax and loss are `pipec.kernels`, forward and
backward, beside the same model with PyTorch's operators. Loss and gradients of both are compared
with those of f64; then the time of a step, forward and backward, is measured: eager, compiled, and
each as a CUDA graph. Needs a Hopper GPU.

    python transformer.py [--layers 4] [--width 1024] [--tokens 1024] [--batch 2] [--rounds 7]

More than 3072 tokens cannot be captured: the gradient of PyTorch's embedding waits for the device.
"""

import argparse
import statistics
import types

import torch
import torch.nn.functional as F

import pipec.kernels

DEVICE = "cuda"


def _torch_linear(x, weight, bias=None, activation=None, residual=None):
    y = F.linear(x, weight, bias)
    if activation == "gelu":
        y = F.gelu(y, approximate="tanh")
    return y if residual is None else y + residual


# The functions of pipec.kernels, by PyTorch's operators
THEIRS = types.SimpleNamespace(
    matmul=torch.matmul,
    linear=_torch_linear,
    softmax=lambda x: torch.softmax(x, -1),
    rms_norm=lambda x, n, weight, eps: F.rms_norm(x, (n,), weight, eps),
    layer_norm=lambda x, n, weight, bias: F.layer_norm(x, (n,), weight, bias),
    cross_entropy=lambda x, labels: F.cross_entropy(
        (x if x.dtype == torch.float64 else x.float()).flatten(0, -2), labels.flatten()),
)


class Layer(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = torch.nn.Parameter(torch.ones(width))
        self.scale, self.shift = (torch.nn.Parameter(f(width)) for f in (torch.ones, torch.zeros))
        self.qkv, self.out, self.up, self.down = (
            torch.nn.Parameter(torch.randn(n, m) / m**0.5)
            for n, m in ((3 * width, width), (width, width), (4 * width, width),
                         (width, 4 * width)))
        self.bias = torch.nn.Parameter(torch.zeros(4 * width))

    def forward(self, k, x, mask):
        batch, tokens, width = x.shape
        h = k.rms_norm(x, width, self.norm, 1e-6)
        qkv = k.linear(h, self.qkv).view(batch, tokens, 3, self.heads, width // self.heads)
        q, key, value = (t.contiguous() for t in qkv.permute(2, 0, 3, 1, 4).unbind())
        scores = k.matmul(q, key.mT) * (width // self.heads) ** -0.5 + mask
        mixed = k.matmul(k.softmax(scores), value)
        x = k.linear(mixed.transpose(1, 2).reshape(batch, tokens, width), self.out, residual=x)
        h = k.layer_norm(x, width, self.scale, self.shift)
        return k.linear(k.linear(h, self.up, self.bias, "gelu"), self.down, residual=x)


class Model(torch.nn.Module):
    def __init__(self, k, layers, width, vocabulary, tokens):
        super().__init__()
        self.k = k
        self.embedding = torch.nn.Parameter(torch.randn(vocabulary, width))
        self.layers = torch.nn.ModuleList(Layer(width, width // 64) for _ in range(layers))
        self.norm = torch.nn.Parameter(torch.ones(width))
        self.head = torch.nn.Parameter(torch.randn(vocabulary, width) / width**0.5)
        mask = torch.full((tokens, tokens), -1e4).triu(1)
        self.register_buffer("mask", mask)

    def forward(self, inputs, labels):
        x = F.embedding(inputs, self.embedding)
        for layer in self.layers:
            x = layer(self.k, x, self.mask)
        x = self.k.rms_norm(x, x.shape[-1], self.norm, 1e-6)
        return self.k.cross_entropy(self.k.matmul(x, self.head.T), labels)


def step(model, parameters, inputs, labels):
    loss = model(inputs, labels)
    # A loss that is kept would keep nodes of the stream that it was computed on, where no other
    # stream can be captured.
    return loss.detach(), torch.autograd.grad(loss, parameters)


def captured(run):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = run()
    return graph, results


def milliseconds(run, calls):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / calls


def difference(got, exact):
    """The largest relative error of a gradient, by norms"""
    return max(((g.double() - e).norm() / (e.norm() + 1e-30)).item() for g, e in zip(got, exact))


def models(args):
    """name -> (model, parameters), and the exact loss and gradients with the inputs"""
    torch.manual_seed(0)
    make = (args.layers, args.width, args.vocabulary, args.tokens)
    exact = Model(THEIRS, *make)
    state = {n: x.bfloat16() for n, x in exact.state_dict().items()}
    all_models = {}
    for name, k in (("PyTorch", THEIRS), ("pipec", pipec.kernels)):
        model = Model(k, *make).to(DEVICE, torch.bfloat16)
        model.load_state_dict(state)
        all_models[name] = model, list(model.parameters())
    exact = exact.to(DEVICE, torch.float64)
    exact.load_state_dict(state)
    inputs, labels = (torch.randint(0, args.vocabulary, (args.batch, args.tokens), device=DEVICE)
                      for _ in range(2))
    labels[:, ::7] = -100
    wanted = step(exact, list(exact.parameters()), inputs, labels)
    return all_models, inputs, labels, wanted


def check(name, got, wanted, bound):
    """Loss and gradients; the errors are returned"""
    loss = abs(got[0].double() - wanted[0]).item() / wanted[0].item()
    gradients = difference(got[1], wanted[1])
    assert loss < 1e-2 and gradients < bound, f"{name}: {loss:.2e} of the loss, {gradients:.2e}"
    return loss, gradients


def main():
    parser = argparse.ArgumentParser()
    for name, value in (("layers", 4), ("width", 1024), ("tokens", 1024), ("batch", 2),
                        ("vocabulary", 32000), ("rounds", 7), ("calls", 10)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    all_models, inputs, labels, wanted = models(args)
    eager = {name: step(*model, inputs, labels) for name, model in all_models.items()}
    bound = max(5e-2, 1.5 * difference(eager["PyTorch"][1], wanted[1]))
    runs, errors = {}, {}
    for name, (model, parameters) in all_models.items():
        ways = {"eager": model, "torch.compile": torch.compile(model, fullgraph=True)}
        for way, forward in ways.items():
            def run(forward=forward, parameters=parameters):
                return step(forward, parameters, inputs, labels)
            key = name, way
            errors[key] = check(f"{name}, {way}", run(), wanted, bound)
            runs[key] = run
            graph, results = captured(run)
            graph.replay()
            torch.cuda.synchronize()
            check(f"{name}, {way}, as a graph", results, wanted, bound)
            runs[(*key, "graph")] = graph.replay
    times = {key: [] for key in runs}
    for _ in range(args.rounds):
        for key, run in runs.items():
            times[key].append(milliseconds(run, args.calls))
    print(f"{args.layers} layers of {args.width}, {args.batch} x {args.tokens} tokens, "
          f"{args.vocabulary} words, bf16, {torch.cuda.get_device_name()}: a step, medians of "
          f"{args.rounds} rounds of {args.calls}")
    for name, way in errors:
        loss, gradients = errors[name, way]
        print(f"{name:8} {way:14} {statistics.median(times[name, way]):8.3f} ms, as a graph "
              f"{statistics.median(times[name, way, 'graph']):8.3f} ms; against f64: the loss "
              f"{loss:.1e}, gradients {gradients:.1e}")


if __name__ == "__main__":
    main()

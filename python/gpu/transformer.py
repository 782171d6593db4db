"""A small transformer whose products, norms with their residuals, rotary embedding, softmax, gates
and loss are `pipec.kernels`, forward and backward, and its optimizer too, beside the same model with
PyTorch's operators. Loss, gradients and steps of the optimizer are compared with those of f64; then
the time of a step, forward and backward, is measured: eager, compiled, and each as a CUDA graph; and
that of the optimizer. Needs a Hopper GPU.

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


def _norm_of_sum(norm):
    """With the residual added first, as a second result"""
    def run(x, n, *weights, residual=None):
        if residual is None:
            return norm(x, n, *weights)
        total = x + residual
        return norm(total, n, *weights), total

    return run


def _torch_rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def _torch_softmax(x, causal):
    hidden = torch.ones(x.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
    return torch.softmax(x.masked_fill(hidden, -torch.inf), -1)


# The functions of pipec.kernels, by PyTorch's operators
THEIRS = types.SimpleNamespace(
    matmul=torch.matmul,
    linear=F.linear,
    softmax=_torch_softmax,
    rms_norm=_norm_of_sum(lambda x, n, weight, eps: F.rms_norm(x, (n,), weight, eps)),
    layer_norm=_norm_of_sum(lambda x, n, weight, bias: F.layer_norm(x, (n,), weight, bias)),
    rope=_torch_rope,
    swiglu=lambda gate, up: F.silu(gate) * up,
    cross_entropy=lambda x, labels: F.cross_entropy(
        (x if x.dtype == torch.float64 else x.float()).flatten(0, -2), labels.flatten()),
    AdamW=lambda parameters, **given: torch.optim.AdamW(parameters, fused=True, **given),
)


class Layer(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = torch.nn.Parameter(torch.ones(width))
        self.scale, self.shift = (torch.nn.Parameter(f(width)) for f in (torch.ones, torch.zeros))
        self.qkv, self.out, self.gate, self.up, self.down = (
            torch.nn.Parameter(torch.randn(n, m) / m**0.5)
            for n, m in ((3 * width, width), (width, width), (3 * width, width), (3 * width, width),
                         (width, 3 * width)))

    def forward(self, k, h, x, cos, sin):
        """`x`: the sum of all before `h`, or None in the first layer. Both are returned"""
        batch, tokens, width = h.shape
        if x is None:
            x, h = h, k.rms_norm(h, width, self.norm, 1e-6)
        else:
            h, x = k.rms_norm(h, width, self.norm, 1e-6, residual=x)
        qkv = k.linear(h, self.qkv).view(batch, tokens, 3, self.heads, width // self.heads)
        q, key, value = qkv.unbind(2)
        q, key = k.rope(q, cos, sin) * (width // self.heads) ** -0.5, k.rope(key, cos, sin)
        q, key, value = (t.transpose(1, 2).contiguous() for t in (q, key, value))
        mixed = k.matmul(k.softmax(k.matmul(q, key.mT), causal=True), value)
        h = k.linear(mixed.transpose(1, 2).reshape(batch, tokens, width), self.out)
        h, x = k.layer_norm(h, width, self.scale, self.shift, residual=x)
        return k.linear(k.swiglu(k.linear(h, self.gate), k.linear(h, self.up)), self.down), x


class Model(torch.nn.Module):
    def __init__(self, k, layers, width, vocabulary, tokens):
        super().__init__()
        self.k = k
        self.embedding = torch.nn.Parameter(torch.randn(vocabulary, width))
        self.layers = torch.nn.ModuleList(Layer(width, width // 64) for _ in range(layers))
        self.norm = torch.nn.Parameter(torch.ones(width))
        self.head = torch.nn.Parameter(torch.randn(vocabulary, width) / width**0.5)
        angles = torch.arange(tokens)[:, None] / 10000 ** (torch.arange(32) / 32)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, inputs, labels):
        h, x = F.embedding(inputs, self.embedding), None
        for layer in self.layers:
            h, x = layer(self.k, h, x, self.cos, self.sin)
        h, _ = self.k.rms_norm(h, h.shape[-1], self.norm, 1e-6, residual=x)
        return self.k.cross_entropy(self.k.matmul(h, self.head.T), labels)


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


def optimizers(all_models, gradients):
    """name -> an optimizer of copies of the parameters, whose first steps were compared with f64"""
    made, given = {}, {"lr": 1e-3, "weight_decay": 0.1}
    for name, (model, parameters) in all_models.items():
        copies = [p.detach().clone().requires_grad_() for p in parameters]
        exact = [p.detach().double().requires_grad_() for p in parameters]
        for p, q, g in zip(copies, exact, gradients):
            p.grad, q.grad = g.clone(), g.double()
        made[name] = model.k.AdamW(copies, **given)
        reference = torch.optim.AdamW(exact, **given)
        for _ in range(3):
            made[name].step()
            reference.step()
        error = difference([p.detach() for p in copies], [q.detach() for q in exact])
        assert error < 2e-2, f"{name}, AdamW: {error:.2e}"
        print(f"{name:8} AdamW, three steps against f64: {error:.1e}")
    return made


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
    for name, optimizer in optimizers(all_models, eager["PyTorch"][1]).items():
        runs[name, "AdamW"] = optimizer.step
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
    for name in all_models:
        print(f"{name:8} {'AdamW':14} {statistics.median(times[name, 'AdamW']):8.3f} ms")


if __name__ == "__main__":
    main()

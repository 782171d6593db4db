"""pipec.kernels.AdamW, an optimizer of PyTorch over adamw()."""

import torch

from . import kernels


class AdamW(torch.optim.Optimizer):
    """As torch.optim.AdamW. The moments have the type `moments`, by default that of the weights. A
    CUDA graph would repeat the scalars of one step: capture forward and backward only."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, *,
                 moments=None):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps,
                                  "weight_decay": weight_decay, "moments": moments})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._step(p, group)
        return loss

    def _step(self, p, group):
        state = self.state[p]
        if not state:
            state["step"] = 0
            for name in ("exp_avg", "exp_avg_sq"):
                state[name] = torch.zeros_like(p, dtype=group["moments"],
                                               memory_format=torch.contiguous_format)
        state["step"] += 1
        kernels.adamw(p, p.grad.contiguous(), state["exp_avg"], state["exp_avg_sq"],
                      int(state["step"]), group["lr"], group["betas"], group["eps"],
                      group["weight_decay"])

"""pipec.kernels.AdamW, an optimizer of PyTorch over adamw()."""

import torch

from . import _operators, _plans, _shapes
from ._table import OPERATIONS

_ADAMW = OPERATIONS["adamw"]


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
        for number, group in enumerate(self.param_groups):
            for step, tensors in self._tensors(group).items():
                self._step(number, step, tensors, group)
        return loss

    def _tensors(self, group):
        """Of each number of a step the weights that it is for, with their gradients and moments: a
        list of all tensors, as the arguments of adamw() in turn"""
        by_step = {}
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            state = self.state[p]
            if not state:
                state["step"] = 0
                for name in ("exp_avg", "exp_avg_sq"):
                    state[name] = torch.zeros_like(p, dtype=group["moments"],
                                                   memory_format=torch.contiguous_format)
            state["step"] = step = int(state["step"]) + 1
            tensors = by_step.get(step)
            if tensors is None:
                tensors = by_step[step] = []
            tensors += p, grad, state["exp_avg"], state["exp_avg_sq"]
        return by_step

    def _step(self, number, step, tensors, group):
        """All launches by one call, once the same tensors come again. Until then, and where a
        gradient has to be copied, each weight has its own"""
        scalars = _ADAMW.scalars_of(step, group["lr"], group["betas"], group["eps"],
                                    group["weight_decay"])
        known = self.__dict__.setdefault("_known", {})  # a copy has none
        if number not in known:
            known[number] = _Known()
        if known[number].run(tensors, scalars):
            return
        for at in range(0, len(tensors), 4):
            p, grad, *moments = tensors[at:at + 4]
            _operators.apply(_ADAMW.name, (p, grad.contiguous(), *moments, *scalars))


class _Known:
    """The plans of a group: of all its weights, or of some, if only these have gradients at times"""

    MOST = 8

    def __init__(self):
        self.plans_by_key, self.missed = {}, None
        self.plans = _plans.named(_ADAMW.name, self.plans_by_key)

    def run(self, tensors, scalars):
        """False: there is no plan"""
        made = self.plans.run_with(scalars, tensors)
        if type(made) is bytes and (made != self.missed or not all(map(_shapes.is_whole, tensors))):
            self.missed = made
            return False
        if type(made) is bytes:
            if len(self.plans_by_key) >= self.MOST:
                self.plans_by_key.clear()
            self.plans_by_key[made] = _plans.of_changes(_ADAMW, tensors, scalars)
        elif type(made) is not tuple:
            return False
        _operators.changed(_ADAMW, tensors)
        return True

from collections.abc import Sequence
from typing import Any, Literal

Activation = Literal["relu", "silu", "gelu"]
Precision = Literal["tf32"]

def matmul(a: Any, b: Any, *, precision: Precision | None = None, out: Any = None) -> Any: ...
def linear(
    x: Any,
    weight: Any,
    bias: Any = None,
    activation: Activation | None = None,
    residual: Any = None,
    *,
    precision: Precision | None = None,
    out: Any = None,
) -> Any: ...
def scaled_mm(
    a: Any,
    b: Any,
    scale_a: Any = 1.0,
    scale_b: Any = 1.0,
    bias: Any = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,
    *,
    out: Any = None,
) -> Any: ...
def int_mm(a: Any, b: Any, *, out: Any = None) -> Any: ...
def softmax(
    x: Any, dim: int = -1, *, causal: bool = False, mask: Any = None, out: Any = None
) -> Any: ...
def rms_norm(
    x: Any,
    normalized_shape: int | Sequence[int],
    weight: Any = None,
    eps: float | None = None,
    *,
    residual: Any = None,
    out: Any = None,
) -> Any: ...
def layer_norm(
    x: Any,
    normalized_shape: int | Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    *,
    residual: Any = None,
    out: Any = None,
) -> Any: ...
def sum(x: Any, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any: ...
def amax(x: Any, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any: ...
def axpy(a: float, x: Any, y: Any, *, out: Any = None) -> Any: ...
def cast(x: Any, dtype: Any, *, out: Any = None) -> Any: ...
def transpose(x: Any, *, out: Any = None) -> Any: ...
def adamw(
    p: Any,
    grad: Any,
    exp_avg: Any,
    exp_avg_sq: Any,
    step: int,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
) -> None: ...

class AdamW:
    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        moments: Any = None,
    ) -> None: ...
    param_groups: list[dict[str, Any]]
    state: dict[Any, Any]
    def step(self, closure: Any = None) -> Any: ...
    def zero_grad(self, set_to_none: bool = True) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...

def swiglu(gate: Any, up: Any, *, out: Any = None) -> Any: ...
def geglu(gate: Any, up: Any, *, out: Any = None) -> Any: ...
def rope(
    x: Any, cos: Any, sin: Any, *, interleaved: bool = False, out: Any = None
) -> Any: ...
def cross_entropy(
    x: Any,
    labels: Any,
    ignore_index: int = -100,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Any: ...

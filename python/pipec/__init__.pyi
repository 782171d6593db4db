import os
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from . import _pipec
from . import torch as torch

__version__: str

class Label(NamedTuple):
    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    file: str

class Diagnostic(NamedTuple):
    code: str
    severity: str
    message: str
    labels: tuple[Label, ...]
    notes: tuple[str, ...]
    helps: tuple[str, ...]
    @property
    def line(self) -> int | None: ...

class Error(Exception):
    text: str
    coloured: str
    diagnostics: tuple[Diagnostic, ...]

class Refused(Error): ...
class Unusable(Error, ValueError): ...
class CompilerBug(Error): ...
class Incomplete(Error): ...
class CompileWarning(UserWarning): ...

class Parameter(NamedTuple):
    name: str
    type: str
    is_tensor: bool
    mode: str
    extents: tuple[str, ...]
    alignment: int

class Trial(NamedTuple):
    variant: str | None
    statics: dict[str, int | float | str]
    end: str
    seconds: float
    spread: float
    remark: str | None

class Choice(NamedTuple):
    variant: str | None
    statics: dict[str, int | float]
    predicted: float
    limit: str | None
    machine: str | None
    tuned: bool
    candidates: int
    fixed: str | None

class Run(NamedTuple):
    verdict: str
    arguments: str
    arrays: dict[str, Any]
    seconds: float
    device: str

class Timing(NamedTuple):
    name: str
    seconds: float
    spread: float
    host_seconds: float
    bytes_per_second: float
    flops_per_second: float | None
    share: float
    limit: str

class Bench(tuple[Timing, ...]): ...

class Tuning:
    trials: list[Trial]
    variant: str | None
    best: dict[str, int | float] | None
    kernel: Kernel

class Kernel(_pipec.Kernel):
    signature: str
    parameters: tuple[Parameter, ...]
    statics: dict[str, int | float | str]
    choices: dict[str, tuple[int | float, ...]]
    preconditions: tuple[tuple[str, str | None], ...]
    ensures: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    @property
    def ptx(self) -> str: ...
    @property
    def manifest(self) -> dict[str, Any]: ...
    def using(
        self,
        *,
        variant: str | None = None,
        invariant: bool | None = None,
        target: str | None = None,
        **statics: int | float | bool | str,
    ) -> Kernel: ...
    def on(
        self, stream: Any = None, *, multiprocessors: int = 0, programmatic: bool | None = None
    ) -> Kernel: ...
    def emulated(
        self,
        *,
        seconds: float = 0,
        progress: Callable[[float, float], Any] | bool | None = None,
    ) -> Kernel: ...
    def prepare(
        self,
        device: int = 0,
        shapes: Sequence[Mapping[str, int | float | str]] = (),
        *,
        threads: int = 0,
    ) -> dict[str, Any]: ...
    def info(self, device: int = 0) -> dict[str, Any]: ...
    def verify(self, *args: Any, **named: Any) -> str: ...
    def run(
        self,
        *,
        fills: Mapping[str, str | float] = ...,
        seed: int = 0,
        gpu: bool = False,
        **values: int | float | bool | str,
    ) -> Run: ...
    @property
    def source(self) -> str | None: ...
    @property
    def included(self) -> dict[str, str]: ...
    @property
    def path(self) -> str | None: ...
    def tune(
        self,
        *args: Any,
        rounds: int = 0,
        candidates: int | None = 12,
        near: bool = False,
        seconds: float = 0,
        limit: float = 10,
        progress: Callable[[str, int, int], Any] | bool | None = None,
        **named: Any,
    ) -> Tuning: ...
    def choose(self, *args: Any, **named: Any) -> Choice | None: ...
    def tuned(self, *args: Any, **named: Any) -> Kernel: ...
    def report(self) -> str: ...

def compile(
    text: str,
    kernel: str | None = None,
    *,
    variant: str | None = None,
    name: str = "<text>",
    folder: str | os.PathLike[str] | None = None,
    deny: Sequence[str] = (),
    watchdog: bool = False,
    untuned: bool = False,
    loaded_most: int = 0,
    patience: float = 0,
    choices: str | os.PathLike[str] | None = None,
    invariant: bool = False,
    accept: bool | str | Sequence[str] = (),
    target: str | None = None,
    **statics: int | float | bool | str,
) -> Kernel: ...
def load(
    path: str | os.PathLike[str],
    kernel: str | None = None,
    *,
    variant: str | None = None,
    deny: Sequence[str] = (),
    watchdog: bool = False,
    untuned: bool = False,
    loaded_most: int = 0,
    patience: float = 0,
    choices: str | os.PathLike[str] | None = None,
    invariant: bool = False,
    accept: bool | str | Sequence[str] = (),
    target: str | None = None,
    **statics: int | float | bool | str,
) -> Kernel: ...
def load_image(manifest: str | os.PathLike[str], image: str | os.PathLike[str]) -> Kernel: ...
def load_bundle(
    folder: str | os.PathLike[str],
    *,
    loaded_most: int = 0,
    patience: float = 0,
    target: str | None = None,
) -> Kernel: ...
def bench(
    kernel: Kernel,
    *args: Any,
    beside: Mapping[str, Callable[[], Any]] | Callable[[], Any] | None = None,
    flops: float | None = None,
    seconds: float = 0.5,
    **named: Any,
) -> Bench: ...
def explain(code: str) -> str: ...
def bf16(x: Any) -> Any: ...
def f32(x: Any) -> Any: ...

from typing import Any, Callable

version: str

class Kernel:
    def __call__(self, *args: Any, **named: Any) -> Any: ...
    def _choose(self, values: tuple[str, ...], device: int, /) -> tuple[Any, ...] | None: ...
    def _describe(self) -> dict[str, Any]: ...
    def _launched(
        self,
        stream: int | None,
        multiprocessors: int,
        programmatic: bool | None,
        seconds: float,
        progress: Callable[[float, float], Any] | bool | None,
        /,
    ) -> Kernel: ...
    def _manifest(self) -> str: ...
    def _info(self, device: int) -> dict[str, Any]: ...
    def _prepare(
        self,
        device: int,
        shapes: tuple[tuple[str, ...], ...],
        threads: int,
        progress: Callable[[int, int], None] | None,
        /,
    ) -> str | None: ...
    def _ptx(self) -> str: ...
    def _record(self, *args: Any, **named: Any) -> tuple[Any, Any]: ...
    def _report(self) -> str: ...
    def _run(
        self, values: tuple[str, ...], fills: tuple[str, ...], seed: int, on_gpu: bool, /
    ) -> tuple[str, str, list[tuple[str, str, tuple[int, ...], bytearray]], float, str]: ...
    def _tuned(
        self, values: tuple[str, ...], device: int, /
    ) -> tuple[str, dict[str, Any]] | None: ...
    def _values(self, *args: Any, **named: Any) -> tuple[dict[str, Any], int, dict[str, int | str]]: ...
    def _verify(self, *args: Any, **named: Any) -> str: ...

plan_new_most: int

class Plan: ...

class Plans:
    def run(self, *arguments: Any) -> tuple[Any, ...] | bytes | bool | None: ...
    def run_with(
        self, scalars: tuple[float, ...], arguments: list[Any], /
    ) -> tuple[Any, ...] | bytes | bool | None: ...

def plan(
    arguments: int,
    new: tuple[tuple[Any, ...], ...],
    launches: tuple[tuple[Any, ...], ...],
    results: tuple[tuple[int, tuple[Any, ...] | None], ...],
    /,
) -> Plan: ...
def plans(
    name: str,
    known: dict[bytes, Plan | None],
    conditions: tuple[tuple[Callable[..., Any], tuple[Any, ...], Any], ...],
    /,
) -> Plans: ...
def compile(
    type: type,
    text: str,
    name: str,
    folder: str | None,
    files: tuple[tuple[str, str], ...] | None,
    statics: tuple[str, ...],
    kernel: str | None,
    denied: tuple[str, ...],
    watchdog: bool,
    untuned: bool,
    loaded_most: int,
    patience: float,
    choices: str | None,
    invariant: bool,
    accepted: tuple[str, ...],
    target: str | None,
    /,
) -> Any: ...
def load_image(type: type, manifest: bytes, image: bytes, name: str, /) -> Any: ...
def load_bundle(
    type: type, folder: str, loaded_most: int, patience: float, target: str | None, /
) -> Any: ...
def wait(device: int, /) -> None: ...
def rates(device: int, /) -> tuple[int, int, int, int]: ...
def forked() -> None: ...
def explain(code: str, /) -> str | None: ...
def shipped() -> dict[str, str]: ...
def shipped_files() -> tuple[tuple[str, str], ...]: ...
def tune(
    path: str,
    files: tuple[tuple[str, str], ...],
    kernel: str,
    values: tuple[str, ...],
    device: int,
    rounds: int,
    candidates: int,
    near: bool,
    accepted: tuple[str, ...],
    limit: float,
    next: Callable[[str, int, int], bool],
    target: str | None,
    /,
) -> list[tuple[str, dict[str, Any], str, float, float, str | None]]: ...

from typing import Any, Callable

from . import Kernel

def operator(
    name: str,
    kernel: Kernel,
    backward: Callable[..., Any] | None = None,
    setup_context: Callable[[Any, tuple[Any, ...], Any], None] | None = None,
) -> Callable[..., Any]: ...
def schema(kernel: Kernel) -> str: ...

"""The explorer: a web page of one's own that shows where a model looks.

Each name is imported when it is first used, so that a server listens before torch is there.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attlas.explorer.application import app, serve
    from attlas.explorer.notebook import show

__all__ = [
    "app",
    "serve",
    "show",
]

_HOME = {"app": "application", "serve": "application", "show": "notebook"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"attlas.explorer.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

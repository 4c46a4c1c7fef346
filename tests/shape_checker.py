"""The checker that `conftest` puts on every function of attlas.

jaxtyping's import hook decorates each function where it is defined, and a decoration compiles two
functions. Here one is decorated when it is first called while shapes are checked, and one that is
defined within another shares the decoration of its code with all that are made from it.
"""

import dataclasses
import inspect
import threading
from collections.abc import Callable
from functools import update_wrapper
from types import CodeType, FunctionType
from typing import Any

import jaxtyping
from beartype import beartype
from beartype.roar import BeartypeDecorHintPep673Exception
from jaxtyping import config, install_import_hook

_eager = jaxtyping.jaxtyped
# By the identity of its code: two codes of the same text are equal, and their annotations are not.
_checked: dict[int, tuple[CodeType, Callable[..., Any]]] = {}
_called = threading.local()


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` checked by beartype, or as it is where `Self` keeps beartype from reading it.

    Beartype understands `Self` only where it decorates the whole class; the import hook decorates
    each method alone.
    """
    try:
        return beartype(function)
    except BeartypeDecorHintPep673Exception:
        return function


def install() -> None:
    """Check every function of attlas that is imported from now on."""
    jaxtyping.jaxtyped = _jaxtyped
    install_import_hook("attlas", "shape_checker.checked")


def _jaxtyped(function: Any = None, *, typechecker: Any) -> Any:
    if function is None:
        return lambda function: _jaxtyped(function, typechecker=typechecker)
    if isinstance(function, FunctionType):
        return _lazily(function, typechecker)
    if inspect.isclass(function):
        if dataclasses.is_dataclass(function) and isinstance(function.__init__, FunctionType):
            function.__init__ = _lazily(function.__init__, typechecker)
        return function
    return _eager(function, typechecker=typechecker)


def _lazily(function: Any, typechecker: Any) -> Any:
    code = function.__code__

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if config.jaxtyping_disable:
            return function(*args, **kwargs)
        found = _checked.get(id(code))
        if found is None:
            found = _checked[id(code)] = (
                code,
                _eager(_relay_like(function), typechecker=typechecker),
            )
        waiting = _waiting()
        depth = len(waiting)
        waiting.append(function)
        try:
            return found[1](*args, **kwargs)
        finally:
            del waiting[depth:]  # the function, where its arguments were refused

    return update_wrapper(wrapper, function)


def _waiting() -> list[Callable[..., Any]]:
    """The functions of this thread whose arguments are being checked."""
    try:
        found: list[Callable[..., Any]] = _called.waiting
    except AttributeError:
        found = _called.waiting = []
    return found


def _relay_like(function: FunctionType) -> Any:
    """What calls the function that waits, and has the signature and the names of this one."""
    waiting = _waiting

    def relay(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return waiting().pop()(*args, **kwargs)

    same = FunctionType(relay.__code__, function.__globals__, closure=relay.__closure__)
    return update_wrapper(same, function)

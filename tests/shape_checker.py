"""The checker that `conftest` puts on every function of attlas.

jaxtyping's import hook decorates each function where it is defined, and a decoration compiles two
functions. Here one is decorated when it is first called while shapes are checked, and one that is
defined within another shares the decoration of its code with all that are made from it.

Each test checks the first calls of each function. Later ones repeat them, and a training that is
checked to its end takes five times as long. A test that hypothesis calls again and again checks
some of the later calls too, fewer and fewer.
"""

import dataclasses
import inspect
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import update_wrapper
from inspect import iscoroutinefunction
from types import CodeType, FunctionType
from typing import Any, ForwardRef, Literal, TypeVar, get_args, get_origin

import jaxtyping
from beartype import beartype
from beartype.roar import BeartypeDecorHintPep673Exception
from jaxtyping import config, install_import_hook

CHECKED = 2  # calls of a function: of a step of a search, one without and one with a memory
CHECKED_OF_PROPERTY = 6  # of a test that hypothesis calls again and again
# Of such a test these calls too: the 7th, the 8th, the 10th … and each as much later again.
LATER = frozenset(int(CHECKED_OF_PROPERTY * 1.3**step) for step in range(1, 60))

_eager = jaxtyping.jaxtyped
# By the identity of its code: two codes of the same text are equal, and their annotations are not.
_checked: dict[int, tuple[CodeType, Callable[..., Any]]] = {}
_called = threading.local()
_calls: defaultdict[int, int] = defaultdict(int)  # in this test, by the identity of the code
_first, _later = CHECKED, frozenset[int]()  # which of them are checked


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


def begin_test(first: int = CHECKED, later: frozenset[int] = frozenset()) -> None:
    """Check the first calls of each function from now on, and those later ones."""
    global _first, _later
    _first, _later = first, later
    _calls.clear()


def _jaxtyped(function: Any = None, *, typechecker: Any) -> Any:
    if function is None:
        return lambda function: _jaxtyped(function, typechecker=typechecker)
    if isinstance(function, FunctionType):
        return _lazily(function, typechecker)
    if inspect.isclass(function):
        init = function.__init__
        # One that is written out is decorated already, as every method is.
        is_generated = isinstance(init, FunctionType) and not hasattr(init, "__wrapped__")
        if dataclasses.is_dataclass(function) and is_generated:
            function.__init__ = _lazily(init, typechecker)
        return function
    return _eager(function, typechecker=typechecker)


def _lazily(function: Any, typechecker: Any) -> Any:
    code = function.__code__
    key = id(code)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        call = _calls[key] = _calls[key] + 1
        if call > _first and call not in _later:
            return function(*args, **kwargs)
        if config.jaxtyping_disable:
            _calls[key] -= 1
            return function(*args, **kwargs)
        found = _checked.get(key)
        if found is None:
            found = _checked[key] = (code, _decorated(function, typechecker))
        waiting = _waiting()
        depth = len(waiting)
        waiting.append(function)
        try:
            return found[1](*args, **kwargs)
        finally:
            del waiting[depth:]  # the function, where its arguments were refused

    return update_wrapper(wrapper, function)


def _decorated(function: FunctionType, typechecker: Any) -> Callable[..., Any]:
    """What checks the arguments and the result, and calls the function that waits.

    beartype alone, where no shape is annotated: it takes a tenth of the time.
    """
    hints = function.__annotations__.values()
    if iscoroutinefunction(function) or any(isinstance(h, str) or _shapes(h) for h in hints):
        return _eager(_relay_like(function), typechecker=typechecker)
    return checked(_relay_like(function))


def _shapes(hint: Any) -> bool:
    """Whether there are shapes in an annotation."""
    if isinstance(hint, (list, tuple)):  # the arguments of a Callable
        return any(map(_shapes, hint))
    if get_origin(hint) is Literal:
        return False
    if isinstance(hint, type) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return isinstance(hint, (str, ForwardRef, TypeVar)) or any(map(_shapes, get_args(hint)))


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

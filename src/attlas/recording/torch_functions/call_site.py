"""Find the module of the observed model that is running."""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from torch import Tensor, nn

from attlas.recording.hooks import CallSite, attribute
from attlas.recording.torch_functions.origins import Inputs, inputs_of
from attlas.recording.torch_functions.tensors import overlap, share_memory, unreadable

# What a module's forward calls the memory of a generation, and what else it is given to look at.
_CACHES = ("past_key_values", "past_key_value", "layer_past", "layer_state")
_PERHAPS_CACHES = ("cache",)  # where it counts what it has seen; else anything may be kept in it
_SOURCES = ("key_value_states", "encoder_hidden_states", "cross_attention_states")
_PERHAPS = ("context", "inputs", "memory")  # sources, beside one of those who ask
_QUERIES = ("hidden_states", "query_states")
_PAIRS = (("query", "key"), ("query_tensor", "key_tensor"))
_CROSS_FLAGS = ("encoder_decoder_attention", "is_cross_attention")  # what a module calls itself
_NO_TEXTS = ("mask", "bias", "pos")  # in the names of what is given beside a text
_CALL = nn.Module._call_impl.__code__
_AT_WORK = "attlas: at work"  # no name of a variable

AtWork = tuple[nn.Module, FrameType, dict[str, Any]]
"""A module, the frame of one of its methods that is running, and its variables."""


class _Walk:
    """The modules that are at work, looked up as far as they are needed, and once."""

    def __init__(self) -> None:
        self._known: list[AtWork] = []
        self._rest = _look_up()

    def __iter__(self) -> Iterator[AtWork]:
        depth = 0
        while True:
            if depth == len(self._known):
                more = next(self._rest, None)
                if more is None:
                    return
                self._known.append(more)
            yield self._known[depth]
            depth += 1


class _ThreadState(threading.local):
    """The walk of the function of torch that is watched in this thread, if there is one."""

    walk: _Walk | None = None


_thread_state = _ThreadState()


@contextmanager
def one_function() -> Iterator[None]:
    """For the length of a block, in which one function of torch is watched and no module is called,
    who is at work is looked up once, however many ask."""
    previous, _thread_state.walk = _thread_state.walk, _Walk()
    try:
        yield
    finally:
        _thread_state.walk = previous


def find_call_site(names: Mapping[int, str]) -> CallSite | None:
    """The innermost module among `names` (identity → path) whose method is running, in this thread.

    Found by looking at who called, so that no module needs a hook: hooks would be seen by other
    threads, and by PyTorch, which leaves its fast paths because of them.
    """
    module: nn.Module | None = None
    arguments: dict[
        str, Any
    ] = {}  # to any of its functions that are running, its forward among them
    variables: dict[str, Any] = {}
    texts: tuple[tuple[int, ...], ...] = ()
    left_model = is_foreign = False
    for owner, frame, frame_locals in _running_modules():
        if isinstance(owner, nn.Softmax):
            continue  # the module that holds it looks
        if module is None and id(owner) in names:
            if is_foreign and frame.f_code.co_name != "forward":
                return None  # another model, such as one that assists in a generation
            module = owner
        is_foreign = is_foreign or module is None
        if module is not None:
            left_model = left_model or owner is not module
            if left_model and (texts or id(owner) not in names):
                break
            parameters = _parameters(frame.f_code, frame_locals)
            if not left_model:
                arguments |= parameters
                variables |= frame_locals
            if frame.f_code.co_name == "forward":
                texts = texts or _texts(parameters)  # else of who holds a module that takes no text
    if module is None:
        return None
    cache = _cache(variables)
    if cache is not None and _has_two(module):
        cache = _outer_cache(cache)
    return CallSite(
        names[id(module)], module, cache, _finds_cross_attention(module, arguments), texts
    )


def running_inputs(module: nn.Module) -> Iterator[Inputs]:
    """The tensors that this module was given, which is at work, then those that the one was given
    that called it, and so on outwards.

    Those of a module that was called are as they came, whatever its body has done to its names;
    those of another method are what its names stand for now.
    """
    current: nn.Module | None = None
    arguments: tuple[Any, ...] = ()
    is_inside = False
    for owner, frame, frame_locals in _running_modules():
        if current is None and owner is not module:
            continue
        if current is not None and owner is not current:
            yield inputs_of(*arguments)
            arguments, is_inside = (), False
        current = owner
        if frame.f_code is _CALL and not is_inside:
            arguments, is_inside = (frame_locals["args"], frame_locals["kwargs"]), True
        elif not is_inside:
            arguments = tuple(_parameters(frame.f_code, frame_locals).values())
    if current is not None:
        yield inputs_of(*arguments)


def outermost_call() -> tuple[object, Callable[[], Inputs]]:
    """The outermost call of a module that is at work, and what it was given; None where it is a
    method alone that runs. While it runs it is the same object, and no other call's.

    Its frame keeps that object: a frame may lie where that of an earlier call lay.
    """
    frame: FrameType | None = sys._getframe(1)
    outermost: FrameType | None = None
    while frame is not None:
        outermost = frame if frame.f_code is _CALL else outermost
        frame = frame.f_back
    if outermost is None:
        return None, dict
    frame_locals = outermost.f_locals
    arguments = frame_locals["args"], frame_locals["kwargs"]
    return frame_locals.setdefault(_AT_WORK, object()), lambda: inputs_of(*arguments)


def _parameters(code: CodeType, frame_locals: Mapping[str, Any]) -> dict[str, Any]:
    return {name: frame_locals[name] for name in _names_of(code)[1] if name in frame_locals}


def _names_of(code: CodeType) -> tuple[str | None, tuple[str, ...]]:
    """The name of the first parameter of a function, and of all that have one."""
    found = _names.get(id(code))
    if found is None:
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        found = _names[id(code)] = code, names[0] if code.co_argcount else None, names
    return found[1:]


_names: dict[int, tuple[CodeType, str | None, tuple[str, ...]]] = {}  # by identities that are kept


def _texts(arguments: Mapping[str, Any]) -> tuple[tuple[int, ...], ...]:
    """The shapes of what may be texts among these, batches of vectors, each memory once: of a text
    and a part of it, the whole.
    """
    texts: list[Tensor] = []
    for name, value in arguments.items():
        if not isinstance(value, Tensor) or any(part in name for part in _NO_TEXTS):
            continue
        vectors = value.ndim == 3 and value.is_floating_point() and not unreadable(value)
        if not vectors:
            continue
        overlapping = [index for index, text in enumerate(texts) if overlap(value, text)]
        if not overlapping:
            texts.append(value)
        elif value.numel() > texts[overlapping[0]].numel():
            texts[overlapping[0]] = value
    return tuple(tuple(text.shape) for text in texts)


def _running_modules() -> Iterable[AtWork]:
    """The modules whose methods are running, the innermost first, in which frames, and with which
    variables."""
    return _look_up() if _thread_state.walk is None else _thread_state.walk


def _look_up() -> Iterator[AtWork]:
    """The same, as it is now.

    A function that was given a module is at work for it where a method of the module called it:
    a function that compares two models works for neither.
    """
    frame: FrameType | None = sys._getframe(1)
    pending: list[AtWork] = []
    while frame is not None:
        code = frame.f_code
        first, _ = _names_of(code)
        frame_locals = frame.f_locals if first is not None else {}
        owner = frame_locals.get(first or "")
        if isinstance(owner, nn.Module):
            if _is_method(code, type(owner)):
                yield from (at_work for at_work in pending if at_work[0] is owner)
                pending = []
                yield owner, frame, frame_locals
            else:
                pending.append((owner, frame, frame_locals))
        frame = frame.f_back


def _is_method(code: CodeType, kind: type[nn.Module]) -> bool:
    is_method = _methods.get((id(code), kind))
    if is_method is None:
        owner = code.co_qualname.rpartition(".")[0]
        is_method = any(base.__qualname__ == owner for base in kind.__mro__)
        _methods[id(code), kind] = is_method
    return is_method


_methods: dict[tuple[int, type[nn.Module]], bool] = {}


def _cache(arguments: Mapping[str, Any]) -> Any:
    """The memory of a generation; a tensor of that name is a table."""
    caches = [arguments.get(name) for name in _CACHES]
    perhaps = [arguments.get(name) for name in _PERHAPS_CACHES]
    caches += [value for value in perhaps if hasattr(value, "get_seq_length")]
    return next(
        (value for value in caches if value is not None and not isinstance(value, Tensor)), None
    )


def _has_two(module: nn.Module) -> bool:
    """Return True if a generation of its model remembers a target and a source, in a cache of
    two.
    """
    config = attribute(module, "config")
    return getattr(config, "is_encoder_decoder", None) is True


def _outer_cache(cache: Any) -> Any:
    """The cache of two of which this is one, where a caller has it: Whisper's layers go on with the
    one that they need, and what they remember belongs together."""
    if hasattr(cache, "self_attention_cache"):
        return cache
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        frame_locals = frame.f_locals
        for caches in filter(None, map(frame_locals.get, _CACHES)):
            parts = (getattr(caches, f"{kind}_attention_cache", None) for kind in ("self", "cross"))
            if any(part is cache for part in parts):
                return caches
        frame = frame.f_back
    return cache


def _finds_cross_attention(module: nn.Module, arguments: Mapping[str, Any]) -> bool | None:
    for query, key in (
        (arguments.get(query_name), arguments.get(key_name)) for query_name, key_name in _PAIRS
    ):
        if isinstance(query, Tensor) and isinstance(key, Tensor):
            if _same_memory(key, query):
                return False
            if isinstance(module, nn.MultiheadAttention):
                return _finds_other_text(query, key, arguments.get("value"))
    query = next((arguments[name] for name in _QUERIES if name in arguments), None)
    sources = [arguments[name] for name in _SOURCES if name in arguments]
    if not sources and isinstance(query, Tensor):
        sources = [arguments[name] for name in _PERHAPS if name in arguments]
        sources = [
            source
            for source in sources
            if isinstance(source, Tensor) and not _same_memory(source, query)
        ]
    if sources:
        queries = [query] if isinstance(query, Tensor) else []
        return any(
            source is not None and not any(source is given_query for given_query in queries)
            for source in sources
        )
    if any(name in arguments for name in _QUERIES):
        return False
    flags = (attribute(module, name) for name in _CROSS_FLAGS)
    return next((flag for flag in flags if isinstance(flag, bool)), None)


def _finds_other_text(query: Tensor, key: Tensor, value: Any) -> bool | None:
    """Return True if a query of other memory than its key is of another text; None = nobody can
    know.

    attn(norm(x), norm(x), norm(x)), attn(x + positions, x + positions, x) and attn(x[:, -1:], x, x)
    look at their own text, and are not seen from attn(x, memory + positions, memory).
    """
    if unreadable(query, key):
        return None
    if share_memory(query, key):
        return None
    made_apart = isinstance(value, Tensor) and not _same_memory(value, key)
    return None if made_apart and query.shape == key.shape else True


def _same_memory(first: Tensor, second: Tensor) -> bool:
    """Return True if both are one and the same memory: a tensor may have been transposed twice."""
    if first is second:
        return True
    if (
        unreadable(first, second)
        or first.shape != second.shape
        or first.stride() != second.stride()
    ):
        return False
    return first.numel() > 0 and first.data_ptr() == second.data_ptr()

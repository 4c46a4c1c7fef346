"""Whose call it is: the module of the observed model that is at work."""

import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

from torch import Tensor, nn

from attlas.recording.foreign.origins import Inputs, inputs_of
from attlas.recording.foreign.unreadable import unreadable
from attlas.recording.foreign.versions import overlap, share_memory
from attlas.recording.place import Place

# What a module's forward calls the memory of a generation, and what else it is given to look at.
_CACHES = ("past_key_values", "past_key_value", "layer_past", "layer_state")
_PERHAPS_CACHES = ("cache",)  # where it counts what it has seen; else anything may be kept in it
_SOURCES = ("key_value_states", "encoder_hidden_states", "cross_attention_states")
_PERHAPS = ("context", "inputs", "memory")  # sources, beside one of those who ask
_QUERIES = ("hidden_states", "query_states")
_PAIRS = (("query", "key"), ("query_tensor", "key_tensor"))
_TOLD = ("encoder_decoder_attention", "is_cross_attention")  # what a module calls itself
_NO_TEXTS = ("mask", "bias", "pos")  # in the names of what is given beside a text
_CALL = nn.Module._call_impl.__code__
_AT_WORK = "attlas: at work"  # no name of a variable


def place_of_call(names: Mapping[int, str]) -> Place | None:
    """The innermost module among `names` (identity → path) whose method is running, in this thread.

    Found by looking at who called, so that no module needs a hook: hooks would be seen by other
    threads, and by PyTorch, which leaves its fast paths because of them.
    """
    module: nn.Module | None = None
    given: dict[str, Any] = {}  # to any of its functions that are running, its forward among them
    locally: dict[str, Any] = {}
    texts: tuple[tuple[int, ...], ...] = ()
    left = strange = False
    for who, frame in _at_work():
        if isinstance(who, nn.Softmax):
            continue  # whoever holds it looks
        if module is None and id(who) in names:
            if strange and frame.f_code.co_name != "forward":
                return None  # another model, such as one that assists in a generation
            module = who
        strange = strange or module is None
        if module is not None:
            left = left or who is not module
            if left and (texts or id(who) not in names):
                break
            own = _parameters(frame)
            if not left:
                given |= own
                locally |= frame.f_locals
            if frame.f_code.co_name == "forward":
                texts = texts or _texts(own)  # else of who holds a module that takes no text
    if module is None:
        return None
    cache = _cache(locally)
    if cache is not None and _has_two(module):
        cache = _both(cache)
    return Place(names[id(module)], module, cache, _across(module, given), texts)


def inputs_at_work(module: nn.Module) -> Iterator[Inputs]:
    """The tensors that this module was given, which is at work, then those that the one was given
    that called it, and so on outwards.

    Those of a module that was called are as they came, whatever its body has done to its names;
    those of another method are what its names stand for now.
    """
    current: nn.Module | None = None
    given: tuple[Any, ...] = ()
    called = False
    for who, frame in _at_work():
        if current is None and who is not module:
            continue
        if current is not None and who is not current:
            yield inputs_of(*given)
            given, called = (), False
        current = who
        if frame.f_code is _CALL and not called:
            given, called = (frame.f_locals["args"], frame.f_locals["kwargs"]), True
        elif not called:
            given = tuple(_parameters(frame).values())
    if current is not None:
        yield inputs_of(*given)


def call_at_work() -> tuple[object, Callable[[], Inputs]]:
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
    known = outermost.f_locals
    given = known["args"], known["kwargs"]
    return known.setdefault(_AT_WORK, object()), lambda: inputs_of(*given)


def _parameters(frame: FrameType) -> dict[str, Any]:
    code, known = frame.f_code, frame.f_locals
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {name: known[name] for name in names if name in known}


def _texts(given: Mapping[str, Any]) -> tuple[tuple[int, ...], ...]:
    """The shapes of what may be texts among these, batches of vectors, each memory once: of a text
    and a part of it, the whole.
    """
    texts: list[Tensor] = []
    for name, one in given.items():
        if any(part in name for part in _NO_TEXTS) or not isinstance(one, Tensor):
            continue
        vectors = one.ndim == 3 and one.is_floating_point() and not unreadable(one)
        if not vectors:
            continue
        alike = [place for place, text in enumerate(texts) if overlap(one, text)]
        if not alike:
            texts.append(one)
        elif one.numel() > texts[alike[0]].numel():
            texts[alike[0]] = one
    return tuple(tuple(text.shape) for text in texts)


def _at_work() -> Iterator[tuple[nn.Module, FrameType]]:
    """The modules whose methods are running, the innermost first, and in which frames.

    A function that was given a module is at work for it where a method of the module called it:
    a function that compares two models works for neither.
    """
    frame: FrameType | None = sys._getframe(1)
    waiting: list[tuple[nn.Module, FrameType]] = []
    while frame is not None:
        code = frame.f_code
        who = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        if isinstance(who, nn.Module):
            waiting.append((who, frame))
            if _is_method(code, who):
                yield from (pair for pair in waiting if pair[0] is who)
                waiting = []
        frame = frame.f_back


def _is_method(code: CodeType, who: nn.Module) -> bool:
    owner = code.co_qualname.rpartition(".")[0]
    return any(kind.__qualname__ == owner for kind in type(who).__mro__)


def _cache(given: Mapping[str, Any]) -> Any:
    """The memory of a generation; a tensor of that name is a table."""
    named = [given.get(name) for name in _CACHES]
    perhaps = [given.get(name) for name in _PERHAPS_CACHES]
    named += [one for one in perhaps if hasattr(one, "get_seq_length")]
    return next((one for one in named if one is not None and not isinstance(one, Tensor)), None)


def _has_two(module: nn.Module) -> bool:
    """Whether a generation of its model remembers a target and a source, in a cache of two."""
    config = getattr(module, "config", None)
    return getattr(config, "is_encoder_decoder", None) is True


def _both(cache: Any) -> Any:
    """The cache of two of which this is one, where a caller has it: Whisper's layers go on with the
    one that they need, and what they remember belongs together."""
    if hasattr(cache, "self_attention_cache"):
        return cache
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        known = frame.f_locals
        for whole in filter(None, map(known.get, _CACHES)):
            parts = (
                getattr(whole, f"{which}_attention_cache", None) for which in ("self", "cross")
            )
            if any(part is cache for part in parts):
                return whole
        frame = frame.f_back
    return cache


def _across(module: nn.Module, given: Mapping[str, Any]) -> bool | None:
    for asking, asked in ((given.get(one), given.get(other)) for one, other in _PAIRS):
        if isinstance(asking, Tensor) and isinstance(asked, Tensor):
            if _same(asked, asking):
                return False
            if isinstance(module, nn.MultiheadAttention):
                return _across_places(asking, asked, given.get("value"))
    asking = next((given[name] for name in _QUERIES if name in given), None)
    sources = [given[name] for name in _SOURCES if name in given]
    if not sources and isinstance(asking, Tensor):
        sources = [given[name] for name in _PERHAPS if name in given]
        sources = [one for one in sources if isinstance(one, Tensor) and not _same(one, asking)]
    if sources:
        given_asking = [asking] if isinstance(asking, Tensor) else []
        return any(
            source is not None and not any(source is one for one in given_asking)
            for source in sources
        )
    if any(name in given for name in _QUERIES):
        return False
    told = (getattr(module, name, None) for name in _TOLD)
    return next((one for one in told if isinstance(one, bool)), None)


def _across_places(query: Tensor, key: Tensor, value: Any) -> bool | None:
    """Whether a query of other memory than its key is of another text; None = nobody can know.

    attn(norm(x), norm(x), norm(x)), attn(x + positions, x + positions, x) and attn(x[:, -1:], x, x)
    look at their own text, and are not seen from attn(x, memory + positions, memory).
    """
    if unreadable(query, key):
        return None
    if share_memory(query, key):
        return None
    made_apart = isinstance(value, Tensor) and not _same(value, key)
    return None if made_apart and query.shape == key.shape else True


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether both are one and the same memory: a tensor may have been transposed twice."""
    if one is other:
        return True
    if unreadable(one, other) or one.shape != other.shape or one.stride() != other.stride():
        return False
    return one.numel() > 0 and one.data_ptr() == other.data_ptr()

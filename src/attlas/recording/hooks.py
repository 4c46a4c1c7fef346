"""Hooks in layers, listeners, and the places of attention calls."""

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from os import PathLike
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.modules import module as registered

from attlas.errors import AttlasError, quoted
from attlas.recording.maps.base import AttentionMap

# The place of a call: a module of the model.


@dataclass(frozen=True, slots=True)
class CallSite:
    """The place of an attention call without a hook.

    Args:
        path: Of the module in its model.
        cache: The memory of earlier steps that the module was given, if any.
        cross_attention: Whether it was given another text to look at; None = unknown, or both.
        is_final: Whether nothing more can be found out about it.
        texts: The shapes of the texts that it was given, or who holds it: vectors with a batch or
            without one, each memory once.
        position_unknown: Whether its queries stand at no known keys, by what they and the keys were
            made of: parameters alone, or one text of which the places were moved for the ones and
            not the others.
        first_query_position: Says where the first query stands among the keys, if queries are a
            part of their text.
    """

    path: str
    module: nn.Module
    cache: Any = field(default=None, compare=False)
    cross_attention: bool | None = None
    texts: tuple[tuple[int, ...], ...] = ()
    is_final: bool = False
    position_unknown: bool = False
    first_query_position: Callable[[], Any] | None = field(default=None, compare=False)

    def is_cross_attention(self, batch: int, queries: int, num_keys: int) -> bool | None:
        """Return True for cross-attention with these numbers of queries and keys; None = unknown.

        If it is unknown: with a single text that is as long as both, it is self-attention; with
            different lengths, and one text as long as the queries and another as long as the keys,
            it is cross-attention.
        """
        if self.is_final or self.cross_attention is not None:
            return self.cross_attention
        query_text, key_text = self._texts_of(batch, queries), self._texts_of(batch, num_keys)
        if queries == num_keys:
            return False if len(key_text) == 1 else None
        return True if query_text and key_text and not set(query_text) & set(key_text) else None

    def may_hold_text(self, batch: int, num_positions: int) -> bool:
        """Return True if so many places in turn may be those of a text that was given, or of all of
        them one behind the other; of no text it can be shown that they are not.

        They are others where a text is taken in chunks, or is asked by learned queries.
        """
        pairs = [text[:2] for text in self.texts]
        # Texts come first or places do: where the number of texts does not decide it, either.
        lengths = [
            {pair[1 - axis] for axis, size in enumerate(pair) if size == batch} or set(pair)
            for pair in pairs
        ]
        sums_fit = (sum(combination) == num_positions for combination in product(*lengths))
        fits = any(num_positions in lengths_of_text for lengths_of_text in lengths) or any(sums_fit)
        return (
            not pairs or fits or bool(self._texts_of(batch, num_positions))
        )  # some have places last

    def _texts_of(self, batch: int, num_positions: int) -> list[tuple[int, ...]]:
        return [text for text in self.texts if not Counter((batch, num_positions)) - Counter(text)]

    def has_unfolded_heads(self, rows: int, num_positions: int, heads: int) -> bool:
        """Return True if so many rows are as many texts as were given, each for one head alone, and
        not that many times fewer, each for all heads.
        """
        counts = [Counter(text[:2]) for text in self.texts]
        return (
            Counter((rows, num_positions)) in counts
            and Counter((rows // heads, num_positions)) not in counts
        )


def attribute(owner: Any, name: str) -> Any:
    """`getattr(owner, name, None)`, without the cost of a module's error for a missing
    attribute.
    """
    if isinstance(owner, nn.Module):
        value = owner.__dict__.get(name, owner)
        if value is not owner:
            return value
        kind: Any = type(owner)
        if not _has_more(kind, name):
            return None  # what is left are parameters, buffers and modules
    return getattr(owner, name, None)


@lru_cache(4096)
def _has_more(kind: Hashable, name: str) -> bool:
    """Return True if such a module may have an attribute of this name beside those that it
    holds.
    """
    return hasattr(kind, name) or getattr(kind, "__getattr__", None) is not nn.Module.__getattr__


Weights = Float[Tensor, "batch heads queries keys"]
Allowed = Bool[Tensor, "#batch #heads queries keys"]
WeightPatch = Callable[[Weights, Allowed, str], Weights]


@runtime_checkable
class RecorderProtocol(Protocol):
    """Records attention without a hook, and whether the model ran at all."""

    has_run: bool

    def is_selected(self, path: str) -> bool:
        """Return True if the map of this layer is to be kept."""

    def record_call(self, site: CallSite, attention_map: AttentionMap, content: Any = None) -> None:
        """The attention map of one call at this place.

        Args:
            content: The content of its keys, if known.
        """

    def expect_attention(self, site: CallSite, is_certain: bool) -> None:
        """Note a softmax at this place, which may be attention, or certainly is."""

    def confirm_attention(self, site: CallSite, is_certain: bool) -> None:
        """Note that the expected attention at this place has been recorded."""

    def note_matrix(self, site: CallSite) -> None:
        """Note a softmax of two axes at this place, which may be of classes as well."""

    def record_unreadable(self, site: CallSite, reason: str) -> None:
        """Note attention at this place that cannot be read, with the reason."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener of some attention hooks: `names` maps each hook's identity to the path of its
    layer.

    Args:
        modules: The same of modules, among which attention may happen that has no hook; it is
            handed to the recorder.
        compare: Called after `record`, of the layers that know both, with what the heads read,
            (batch, heads, queries, value_dim), and the values, (batch, kv_heads, keys, value_dim).
    """

    names: Mapping[int, str]
    record: Callable[[str, AttentionMap, bool | None], None] | None = None
    patch: WeightPatch | None = None
    modules: Mapping[int, str] = field(default_factory=dict)
    recorder: RecorderProtocol | None = None
    compare: Callable[[str, Tensor, Tensor], None] | None = None


class _ActiveListeners:
    """The listeners of one thread."""

    def __init__(self) -> None:
        self.active: tuple[Listener, ...] = ()


class _ThreadState(threading.local):
    """The listeners of this thread, so that two requests never see each other."""

    def __init__(self) -> None:
        self.active_listeners = _ActiveListeners()


_thread_state = _ThreadState()


class AttentionHook(nn.Module):
    """The hook of an attention layer; without a listener it stores and costs nothing.

    A layer asks `is_recording` before it builds an attention map and `is_patched` before it leaves
    its fused kernel, so that the listener, not the layer, decides what is stored and computed:

        if self.hook.is_patched:
            weights = self.hook.patch(weights, seen)  # bool: which keys may be looked at
        if self.hook.is_recording:
            self.hook.record(DenseAttentionMap(weights.detach()))  # (batch, heads, queries, keys)

    cross_attention: whether the layer is cross-attention, if the model knows.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cross_attention: bool | None = None

    @property
    def is_recording(self) -> bool:
        """Return True if this hook is observed in this thread."""
        return any(
            id(self) in listener.names
            for listener in _thread_state.active_listeners.active
            if listener.record
        )

    @property
    def is_patched(self) -> bool:
        """Return True if this hook's weights are replaced in this thread."""
        return any(
            id(self) in listener.names
            for listener in _thread_state.active_listeners.active
            if listener.patch
        )

    def record(self, attention_map: AttentionMap) -> None:
        """Pass an attention map to all observers of this hook."""
        for listener in _thread_state.active_listeners.active:
            if listener.record and id(self) in listener.names:
                listener.record(listener.names[id(self)], attention_map, self.cross_attention)

    @property
    def is_compared(self) -> bool:
        """Return True if what this hook's layer reads is compared in this thread."""
        return any(
            id(self) in listener.names
            for listener in _thread_state.active_listeners.active
            if listener.compare
        )

    def compare(self, context: Tensor, values: Tensor) -> None:
        """Pass what the heads have read, and of which values, to all who compare it."""
        for listener in _thread_state.active_listeners.active:
            if listener.compare and id(self) in listener.names:
                listener.compare(listener.names[id(self)], context, values)

    def patch(self, weights: Weights, allowed: Allowed) -> Weights:
        """The weights after every intervention, in the order in which they were entered."""
        for listener in _thread_state.active_listeners.active:
            if listener.patch and id(self) in listener.names:
                weights = listener.patch(weights, allowed, listener.names[id(self)])
        return weights


def is_observed(model: nn.Module) -> bool:
    """Return True if an attlas layer in it is observed or patched, in this thread."""
    return any(
        m.is_recording or m.is_patched for m in model.modules() if isinstance(m, AttentionHook)
    )


def check_module(model: object) -> None:
    """Raise `AttlasError` for anything but a module, with a hint."""
    if isinstance(model, nn.Module):
        return
    got, hint = f"a {type(model).__name__}", "pass the model itself"
    if isinstance(model, type) and issubclass(model, nn.Module):
        got, hint = f"the class {model.__name__}", f"make a model of it first: {model.__name__}(…)"
    elif isinstance(getattr(model, "__self__", None), nn.Module):
        got = f"its method {getattr(model, '__name__', '')!r}"
        hint = "pass the model itself, and call the method inside the block"
    elif isinstance(getattr(model, "model", None), nn.Module):
        hint = "pass the model itself: its attribute `model`"
    elif isinstance(model, str | PathLike):
        got = f"the text {quoted(str(model))}"
        hint = "load the model first, as attlas.Run(folder).model() does, and pass the model itself"
    raise AttlasError("a model, a torch.nn.Module", got, hint)


def attention_hooks(model: nn.Module) -> dict[int, str]:
    """Every attention hook inside `model`, with the path of its layer ("" = the model itself).

    Raises:
        AttlasError: For anything but a module.
    """
    check_module(model)
    return {
        id(module): path.rpartition(".")[0]
        for path, module in model.named_modules()
        if isinstance(module, AttentionHook)
    }


_FORWARD_KINDS = ("forward", "forward_pre", "backward", "backward_pre")


def has_hooks(modules: Iterable[nn.Module]) -> bool:
    """Return True if a call of one of these modules is more than its `forward`: if it has hooks, if
    there are global hooks, or if it was compiled. Then it must be called, not bypassed.
    """
    return any(getattr(registered, f"_global_{kind}_hooks") for kind in _FORWARD_KINDS) or any(
        any(getattr(module, f"_{kind}_hooks") for kind in _FORWARD_KINDS)
        or module._compiled_call_impl is not None
        for module in modules
    )


_WITHOUT_ATTENTION = frozenset(
    {
        *(nn.Identity, nn.Linear, nn.Embedding, nn.LayerNorm, nn.RMSNorm, nn.Dropout),
        *(nn.Sequential, nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict),
        *(nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell, nn.GRUCell),
        *(nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid),
    }
)
"""Modules of torch in which no attention happens; any other may hold some."""


def has_only_hooked_attention(model: nn.Module) -> bool:
    """Return True if every attention inside a model records itself by an `AttentionHook`.

    True only if all modules are attlas's own classes, or of `_WITHOUT_ATTENTION`, and unchanged: no
    foreign subclass, no hook, no replaced `forward` or other function. In doubt it is False.
    """
    modules = list(model.modules())
    hooked = any(isinstance(module, AttentionHook) for module in modules)
    return (
        hooked
        and not has_hooks(modules)
        and all(map(_runs_as_written, {type(module) for module in modules}))
        and all(_is_own_code(value) for module in modules for value in vars(module).values())
    )


def _runs_as_written(kind: type[nn.Module]) -> bool:
    """Return True if no attention happens in modules of a class but by hooks."""
    if kind in _WITHOUT_ATTENTION:
        return kind.forward.__module__.startswith("torch.nn.modules.")
    own_classes = [base for base in kind.__mro__ if _is_own(base.__module__)]
    # In a class that was patched, a function is of another module than the class.
    return kind in own_classes and all(
        _is_own_code(value) for base in own_classes for value in vars(base).values()
    )


def _is_own_code(value: object) -> bool:
    """Return True if this is no function, or one of attlas."""
    function = getattr(value, "__func__", value)  # of a static method
    return not callable(function) or _is_own(
        getattr(function, "__module__", None) or type(function).__module__
    )


def _is_own(module_name: str) -> bool:
    return module_name.partition(".")[0] == _PACKAGE


_PACKAGE = __name__.partition(".")[0]


def modules_of(model: nn.Module) -> dict[int, str]:
    """Every module inside `model` by identity, with its path ("" = the model itself)."""
    return {id(module): path for path, module in model.named_modules()}


def listeners() -> tuple[Listener, ...]:
    """The active listeners of this thread, in the order in which they began."""
    return _thread_state.active_listeners.active


@contextmanager
def without_recording() -> Iterator[None]:
    """Pause all observers of this thread for the block; interventions stay active. It is for passes
    that a program makes for itself.
    """
    listeners = _thread_state.active_listeners
    previous = listeners.active
    listeners.active = tuple(
        Listener(listener.names, patch=listener.patch, modules=listener.modules)
        for listener in previous
        if listener.patch
    )
    try:
        yield
    finally:
        listeners.active = previous


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Activate a listener for the block, in this thread."""
    listeners = _thread_state.active_listeners
    listeners.active = (*listeners.active, listener)
    try:
        yield
    finally:  # blocks of generators need not end in the order in which they began, nor where
        listeners.active = tuple(active for active in listeners.active if active is not listener)

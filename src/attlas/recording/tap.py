"""The place in a layer where attention can be listened to."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.recording.place import Place
from attlas.recording.reading import Reading

Weights = Float[Tensor, "batch heads queries slots"]
Seen = Bool[Tensor, "#batch #heads queries slots"]
Rewrite = Callable[[Weights, Seen, str], Weights]


@runtime_checkable
class Journal(Protocol):
    """Where attention without a tap is written down, and whether the model ran at all."""

    ran: bool

    def wants(self, path: str) -> bool:
        """Whether it is worth making a reading of a layer that looks."""

    def hear(self, place: Place, reading: Reading, content: Any = None) -> None:
        """The reading of one call at this place; content: what its keys hold, where known."""

    def expect(self, place: Place, surely: bool) -> None:
        """A softmax was taken at this place, which may be attention, or surely is."""

    def meet(self, place: Place, surely: bool) -> None:
        """It was: what was expected there has come."""

    def miss(self, place: Place, why: str) -> None:
        """Attention happened at this place of which no reading can be made, and why."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Someone who listens to some taps: `names` maps each tap's identity to its layer's path.

    modules: the same of modules, among which attention may happen that has no tap; it is written
    down in the journal.
    """

    names: Mapping[int, str]
    note: Callable[[str, Reading, bool | None], None] | None = None
    rewrite: Rewrite | None = None
    modules: Mapping[int, str] = field(default_factory=dict)
    journal: Journal | None = None


class _Listening:
    """The listeners of one thread."""

    def __init__(self) -> None:
        self.active: tuple[Listener, ...] = ()


class _Here(threading.local):
    """Those of this thread alone, so that two requests never see each other."""

    def __init__(self) -> None:
        self.listening = _Listening()


_here = _Here()


class Tap(nn.Module):
    """Held by a layer where attention happens; without a listener it keeps and costs nothing.

    A layer asks `heard` before it builds a reading and `intervened` before it leaves its fused
    kernel, so that the listener, not the layer, decides what is kept and what is computed:

        if self.tap.intervened:
            weights = self.tap.rewrite(weights, seen)  # seen: bool, which slots may be looked at
        if self.tap.heard:
            self.tap.note(DenseReading(weights.detach()))  # (batch, heads, queries, slots)

    across: whether it looks at something else than what asks; a model that knows says so.
    """

    def __init__(self) -> None:
        super().__init__()
        self.across: bool | None = None

    @property
    def heard(self) -> bool:
        """Whether somebody in this thread observes this tap."""
        return any(id(self) in who.names for who in _here.listening.active if who.note)

    @property
    def intervened(self) -> bool:
        """Whether somebody in this thread replaces this tap's weights."""
        return any(id(self) in who.names for who in _here.listening.active if who.rewrite)

    def note(self, reading: Reading) -> None:
        """Hand a reading to everyone who observes this tap."""
        for who in _here.listening.active:
            if who.note and id(self) in who.names:
                who.note(who.names[id(self)], reading, self.across)

    def rewrite(self, weights: Weights, seen: Seen) -> Weights:
        """The weights after every intervention, in the order in which they were entered."""
        for who in _here.listening.active:
            if who.rewrite and id(self) in who.names:
                weights = who.rewrite(weights, seen, who.names[id(self)])
        return weights


def listened_to(model: nn.Module) -> bool:
    """Whether somebody hears or changes where a layer of attlas in it looks, in this thread."""
    return any(m.heard or m.intervened for m in model.modules() if isinstance(m, Tap))


def taps(model: nn.Module) -> dict[int, str]:
    """Every tap inside `model`, with the path of its layer ("" = the model itself).

    Errors: `AttlasError` for what is no module.
    """
    if not isinstance(model, nn.Module):
        raise AttlasError(
            "a model, a torch.nn.Module", f"a {type(model).__name__}", "pass the model itself"
        )
    return {
        id(module): path.rpartition(".")[0]
        for path, module in model.named_modules()
        if isinstance(module, Tap)
    }


def modules_of(model: nn.Module) -> dict[int, str]:
    """Every module inside `model` by identity, with its path ("" = the model itself)."""
    return {id(module): path for path, module in model.named_modules()}


def listeners() -> tuple[Listener, ...]:
    """Everyone who listens in this thread, in the order in which they began."""
    return _here.listening.active


@contextmanager
def unheard() -> Iterator[None]:
    """Calls of the block are noted by nobody who listens now, in this thread; who changes weights
    still does: what a program reads again for itself is no call of whoever observes it.
    """
    here = _here.listening
    before = here.active
    here.active = tuple(
        Listener(who.names, rewrite=who.rewrite, modules=who.modules)
        for who in before
        if who.rewrite
    )
    try:
        yield
    finally:
        here.active = before


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Enter a listener for the length of a block, in this thread."""
    here = _here.listening
    here.active = (*here.active, listener)
    try:
        yield
    finally:  # blocks of generators need not end in the order in which they began, nor where
        here.active = tuple(who for who in here.active if who is not listener)

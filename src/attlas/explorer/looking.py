"""What the explorer needs of a translator: one call from text to a translation that was watched."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from attlas.recording import Trace


@runtime_checkable
class Looked(Protocol):
    """A translation and where the model looked for it; `decoding.Translation` is one."""

    @property
    def text(self) -> str:
        """The translation as a person reads it."""

    @property
    def source_tokens(self) -> Sequence[str]:
        """One label per token that was read."""

    @property
    def tokens(self) -> Sequence[str]:
        """One label per token that was written."""

    @property
    def score(self) -> float:
        """What the search compared: higher is better."""

    @property
    def finished(self) -> bool:
        """Whether the model ended the translation itself."""

    @property
    def cut(self) -> int:
        """How many source tokens were left out because the source was too long."""

    @property
    def trace(self) -> Trace | None:
        """The attention of every layer; None where `blank` says why there is none."""

    @property
    def blank(self) -> str:
        """Why there is no trace; "" where there is one."""


@runtime_checkable
class Looking(Protocol):
    """A model that translates while it is watched; `decoding.Translator` is one."""

    def __call__(self, text: str, prefix: str = "") -> Looked:
        """Translate one text; the translation begins with `prefix`."""

    @property
    def facts(self) -> Mapping[str, str | int | float | None]:
        """What is known of the model: "parameters", and "run", its folder, where it has one."""


@runtime_checkable
class Bounded(Protocol):
    """A translator that can be bounded; `decoding.Translator` is one."""

    def bounded(self, *, source: int, target: int, before_step: Callable[[], None]) -> Looking:
        """The same, which refuses texts of more than `source` tokens and writes at most `target`.

        before_step is called before every step of a search; what it raises ends the search.
        """

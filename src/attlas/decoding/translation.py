"""What a translator answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from attlas.decoding.alignment import Link, pharaoh
from attlas.decoding.rereading import Rereading
from attlas.recording import Trace


@dataclass(frozen=True)
class Translation:
    """One text, translated; where the model looked is found out when it is first asked for.

    text: the translation, in one line. tokens: one label per token for the axis of a map, END
    included where the hypothesis is finished. score, log_probability, finished: those of the
    `Hypothesis`. cut: how many source tokens were left out because the source was longer than
    `DecodingConfig.longest_source` or than the model has positions for; 0 = translated whole.
    alternatives: the rest of the n-best list, best first.

    An empty text (or white space alone) has the empty translation: no tokens, score 0, and no
    trace.
    """

    text: str
    source_text: str
    tokens: tuple[str, ...]
    score: float
    log_probability: float
    finished: bool
    cut: int
    alternatives: tuple["Translation", ...]
    _source_tokens: Callable[[], tuple[str, ...]] = field(repr=False, compare=False)
    _reread: Callable[[Sequence[str]], Rereading] = field(repr=False, compare=False)
    _words: Callable[[tuple[Link, ...]], tuple[Link, ...]] = field(repr=False, compare=False)

    @cached_property
    def source_tokens(self) -> tuple[str, ...]:
        """One label per source token that was read, for the axis of a map; END included."""
        return self._source_tokens()

    @cached_property
    def rereading(self) -> Rereading:
        """One teacher-forced pass of the model over this translation, made once.

        It shows the model as it is at the first asking: ask before training it further.
        """
        return self._reread(self.source_tokens)

    @property
    def trace(self) -> Trace | None:
        """The attention of every layer, labelled; None where `blank` says why there is none."""
        return self.rereading.trace

    @property
    def blank(self) -> str:
        """Why there is no trace; "" where there is one."""
        return self.rereading.blank

    @property
    def alignment(self) -> tuple[Link, ...]:
        """(source token, target token) links by the highest attention; END is never linked."""
        return self.rereading.alignment

    @cached_property
    def word_alignment(self) -> tuple[Link, ...]:
        """(source word, target word) links, where words are what white space separates."""
        return self._words(self.alignment)

    @property
    def pharaoh(self) -> str:
        """`word_alignment` as "i-j i-j …"."""
        return pharaoh(self.word_alignment)

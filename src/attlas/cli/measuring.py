"""A corpus through a model, window by window, into a table."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from attlas.analysis.corpus import (
    Measured,
    Reader,
    Text,
    Window,
    frames,
    measured,
    windows_of,
)
from attlas.cli.stats_corpus import Corpus, CorpusChangedError
from attlas.cli.stats_part import StatsPart
from attlas.cli.stats_table import Facts, Table
from attlas.data.amount import amount

_LINES = 512  # of a window, at most
_BATCHES = 8  # of a window, about: among so many batches texts are sorted by length


@dataclass(frozen=True, slots=True)
class Measuring:
    """How a corpus is measured. tokens: of a batch, at most; layers: paths or patterns, None = all.
    threshold: of `above`. by_token: one row for each query.
    """

    reader: Reader
    tokens: int
    threshold: float
    layers: tuple[str, ...] | None
    by_token: bool

    def windows(self, texts: Iterable[Text | None]) -> Iterator[Window]:
        """The same windows each time, as long as these settings are the same."""
        # Rows of single tokens are so many that a window of them is a batch.
        tokens = self.tokens * (1 if self.by_token else _BATCHES)
        return windows_of(texts, lines=_LINES, tokens=tokens)

    def of(self, window: Window) -> Iterable[Measured]:
        """The numbers of a window, line by line; of a single text as they come."""
        found = self._of_batches(window.batches(self.tokens))
        if len(window.texts) < 2:
            return found
        return sorted(found, key=lambda one: one.line)  # stable: layers stay in their order

    def _of_batches(self, batches: Iterable[Sequence[Text]]) -> Iterator[Measured]:
        for batch in batches:
            for look in self.reader.looks(batch, self.layers):
                named = self.reader.named(look) if self.by_token else None
                yield measured(look, self.threshold, named)


def measure(
    measuring: Measuring, corpus: Corpus, part: StatsPart, table: Table, facts: Facts
) -> None:
    """Go on with the table from where it is, and put it in its place.

    Errors: `AttlasError` where the corpus changes meanwhile; what is done of it is then forgotten.
    """
    begun, start = part.progress.lines, time.monotonic()
    if begun:
        _say(f"{part.output}: goes on after line {begun:,} of {corpus.lines:,}")
    remarks = _Remarks()
    try:
        with _bar(part.output.name) as bar:
            task = bar.add_task(part.output.name, total=corpus.lines, completed=begun)
            arriving = corpus.stream()
            for _ in islice(arriving, begun):
                pass
            read = measuring.reader.read
            for window in measuring.windows(read(*line) for line in arriving):
                remarks.tell(window.texts)
                rows = frames(measuring.of(window), by_token=measuring.by_token)
                part.add_rows(window.lines, map(table.rows, rows))
                bar.update(task, completed=part.progress.lines)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note("the same command goes on where it stopped")
        raise
    except CorpusChangedError:
        part.forget()
        raise
    part.put_together(facts)
    seconds = time.monotonic() - start
    _say(f"{part.output}: {amount(corpus.lines - begun, 'line')} in {seconds:,.1f} s")


def _bar(name: str) -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class _Remarks:
    """What a reader has to know, told once: the table has it of every line."""

    def __init__(self) -> None:
        self._told = False

    def tell(self, texts: Sequence[Text]) -> None:
        """Of the first text that is longer than the model reads."""
        longer = next((text for text in texts if text.unread), None)
        if longer and not self._told:
            self._told = True
            tokens = amount(longer.unread, "token")
            _say(
                f"line {longer.line} is longer than the model can read: {tokens} of it are left "
                "out; of each text, the column unread counts them"
            )


def _say(what: str) -> None:
    print(f"attlas: {what}", file=sys.stderr)

"""A corpus through a model, window by window, into a table."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from attlas.analysis.corpus import (
    Measured,
    Reader,
    Text,
    Window,
    batches_of,
    frames,
    measured,
    windows_of,
)
from attlas.cli.bar import Bar
from attlas.cli.stats_corpus import Corpus, CorpusChangedError
from attlas.cli.stats_part import StatsPart
from attlas.cli.stats_table import Facts, Table
from attlas.data.amount import amount
from attlas.errors import AttlasError

_BATCHES = 4  # of a window, about: among so many texts are sorted by length
_SHARE = 16  # tokens of a batch for each line of a window: a model may write as many, or more


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """How a corpus is measured. tokens: of a batch, at most; layers: paths or patterns, None = all.
    threshold: of `above`. by_token: one row for each query. also: further columns.
    """

    reader: Reader
    tokens: int
    threshold: float
    layers: tuple[str, ...] | None
    by_token: bool
    also: tuple[str, ...]

    def windows(self, texts: Iterable[Text | None]) -> Iterator[Window]:
        """The same windows each time, as long as these settings are the same.

        A window is what a kill undoes at most, so it is a few batches, and of short lines fewer.
        """
        # Rows of single tokens are so many that a window of them is a batch.
        tokens = self.tokens * (1 if self.by_token else _BATCHES)
        return windows_of(texts, lines=max(1, self.tokens // _SHARE), tokens=tokens)

    def texts(self, window: Window) -> list[Text]:
        """The texts of a window, with what the model itself writes."""
        batches = batches_of(window.texts, self.tokens)
        return [text for batch in batches for text in self.reader.completed(batch)]

    def of(self, texts: Sequence[Text]) -> Iterable[Measured]:
        """The numbers of these texts, line by line; of a single text as they come."""
        # What was written may be longer than what was read, so that these are other batches.
        found = self._of_batches(batches_of(texts, self.tokens))
        if len(texts) < 2:
            return found
        return sorted(found, key=lambda one: one.line)  # stable: layers stay in their order

    def _of_batches(self, batches: Iterable[Sequence[Text]]) -> Iterator[Measured]:
        for batch in batches:
            for look in self.reader.looks(batch, self.layers):
                named = self.reader.named(look) if self.by_token else None
                yield measured(look, self.threshold, named, self.also)


def measure(
    measuring: Measuring, corpus: Corpus, part: StatsPart, table: Table, facts: Facts
) -> None:
    """Go on with the table from where it is, and put it in its place.

    Errors: `AttlasError` where the corpus changes meanwhile, and where no line of it has a row;
    what is done of it is then forgotten.
    """
    begun, start = part.progress.lines, time.monotonic()
    if begun:
        _say(f"{part.output}: goes on after line {begun:,} of {corpus.lines:,}")
    remarks = _Remarks(begun)
    try:
        with Bar(part.output, corpus.lines, begun) as bar:
            arriving = corpus.stream()
            for _ in islice(arriving, begun):
                pass
            read = measuring.reader.read
            for window in measuring.windows(read(*line) for line in arriving):
                texts = measuring.texts(window)
                remarks.tell(window.lines, texts)
                rows = frames(measuring.of(texts), by_token=measuring.by_token, also=measuring.also)
                part.add_rows(window.lines, map(table.rows, rows))
                bar.tell(part.progress.lines)
        if not part.has_rows:
            raise _NothingReadError(
                f"a line of {facts['corpus']} with a token for the model to read",
                f"{amount(corpus.lines, 'line')} without one",
                "check that this is the text that was meant",
            )
    except KeyboardInterrupt as interrupt:
        interrupt.add_note("the same command goes on where it stopped")
        raise
    except (CorpusChangedError, _NothingReadError):
        part.forget()
        raise
    part.put_together(facts)
    remarks.sum_up()
    seconds = time.monotonic() - start
    without = f", {remarks.unread:,} of them without a word," if remarks.unread else ""
    _say(f"{part.output}: {amount(corpus.lines - begun, 'line')}{without} in {seconds:,.1f} s")


class _NothingReadError(AttlasError):
    """No text of the corpus has a token."""


class _Remarks:
    """What a reader has to know, told once: the table has it of every line.

    begun: lines that were done before, of which an earlier command has told. unread: lines so far
    of which nothing was read.
    """

    def __init__(self, begun: int) -> None:
        self._begun = begun
        self._told = False
        self.unread = 0
        self._cut, self._first_cut = 0, 0

    def tell(self, lines: int, texts: Sequence[Text]) -> None:
        """Of the first text that is longer than the model reads. texts: of so many lines."""
        self.unread += lines - len(texts)
        if cut := [text.line for text in texts if not text.finished]:
            self._first_cut = self._first_cut or min(cut)
            self._cut += len(cut)
        longer = [text for text in texts if text.unread]
        if longer and not self._told:
            self._told = True
            first = min(longer, key=lambda text: text.line)
            tokens = amount(first.unread, "token")
            _say(
                f"line {first.line} is longer than the model can read: {tokens} of it are left "
                "out; of each text, the column unread counts them"
            )

    def sum_up(self) -> None:
        """Of all texts that the model did not write to their end."""
        if self._cut:
            after = f", after line {self._begun:,}" if self._begun else ""
            _say(
                f"{amount(self._cut, 'text')} that the model wrote came to no end within its "
                f"limit, the first in line {self._first_cut}{after}: finished is false there"
            )


def _say(what: str) -> None:
    print(f"attlas: {what}", file=sys.stderr)

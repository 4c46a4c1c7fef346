"""A run that classifies: the text itself is read."""

from collections.abc import Sequence

from attlas.analysis.corpus.reader import Look, Reader, Side
from attlas.analysis.corpus.run_facts import run_facts
from attlas.analysis.corpus.text import Text
from attlas.classifying import TextClassifier
from attlas.data import END, as_one_line, padded
from attlas.errors import AttlasError
from attlas.recording import Trace
from attlas.runs import BEST, Run


class ClassifierReader(Reader):
    """Text + END is read, as `TextClassifier` reads it; a text is cut to learned positions.

    The query of an attentive pooling is no token, but the whole text: one query a text.
    """

    def __init__(self, run: Run, *, which: str = BEST, device: str = "cpu") -> None:
        self._classifier = TextClassifier(run, which=which, device=device)
        self.model = self._classifier.model
        self.special = {END}
        self.facts = run_facts(
            run,
            which,
            self.model,
            self._classifier.vocabularies,
            self._classifier.device.type,
        )

    def read(self, line: int, text: str, target: str | None = None) -> Text | None:
        if target is not None:
            raise AttlasError("a text alone", "a target beside it", "a classifier writes no text")
        if not (words := as_one_line(text)):
            return None
        whole = self._classifier.vocabularies.text.encode(words)
        longest = self.model.longest
        ids = whole if longest is None else whole[: longest - 1]
        return Text(line, (*ids, END), unread=len(whole) - len(ids))

    def named(self, look: Look) -> tuple[str, ...]:
        if look.ids is None:
            return ("text",)
        return tuple(self._classifier.vocabularies.text.pieces(look.ids))

    def completed(self, texts: Sequence[Text]) -> Sequence[Text]:
        return texts

    def _run(self, texts: Sequence[Text]) -> None:
        source, real = padded([text.source for text in texts])
        device = self._classifier.device
        self.model(source.to(device), real.to(device))

    def _between(self, layer: str, trace: Trace) -> tuple[Side, Side]:
        return ("text" if layer.startswith("pooling") else "source"), "source"

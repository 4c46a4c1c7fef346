"""A run that translates, read with the right translation or with its own."""

from collections.abc import Sequence
from dataclasses import replace

from attlas.analysis.corpus.reader import Look, Reader, Side
from attlas.analysis.corpus.run_facts import run_facts
from attlas.analysis.corpus.text import Text
from attlas.data import BEGIN, END, padded
from attlas.decoding import DecodingConfig, Translator
from attlas.errors import AttlasError
from attlas.recording import Trace
from attlas.recording.tap import taps
from attlas.runs import BEST, Run

_SIDES: dict[str, tuple[Side, Side]] = {
    "source": ("source", "source"),
    "target": ("target", "target"),
    "across": ("target", "source"),
}


class TranslatorReader(Reader):
    """Source + END is read; the decoder's query t has read BEGIN … y_{t−1} and is about to write
    y_t, END included (teacher forcing).

    search: how to translate where a text comes without its target. A text is cut as a translation
    is: to `longest_source` and to learned positions.
    Errors: `AttlasError` for a run without attention, and as `Run.model`.
    """

    def __init__(
        self, run: Run, search: DecodingConfig, *, which: str = BEST, device: str = "cpu"
    ) -> None:
        self._translator = Translator(run, search, which=which, device=device)
        self.model = self._translator.model
        self.special = {BEGIN, END}
        if not taps(self.model):
            raise AttlasError(
                "a model with attention",
                f"the run at {run.path}, which has none",
                "name another run, or train one with model.attention",
            )
        vocabularies = self._translator.vocabularies
        self.facts = run_facts(run, which, self.model, vocabularies, self._translator.device.type)
        longest = self.model.longest
        limits = [search.longest_source or None, longest and longest - 1]
        self._longest = min((limit for limit in limits if limit is not None), default=None)

    def read(self, line: int, text: str, target: str | None = None) -> Text | None:
        if not text.strip() or (target is not None and not target.strip()):
            return None
        vocabularies = self._translator.vocabularies
        whole = vocabularies.source.encode(text)
        ids = whole[: self._longest]
        read = Text(line, (*ids, END), unread=len(whole) - len(ids))
        if target is None:
            return read
        right = (*vocabularies.target.encode(target), END)
        wanted = right[: self.model.longest]
        lost = len(right) - len(wanted)
        return replace(_written(read, wanted), unread=read.unread + lost)

    def named(self, look: Look) -> tuple[str, ...]:
        vocabularies = self._translator.vocabularies
        of_source = self.model.between(look.layer) == "source"
        side = vocabularies.source if of_source else vocabularies.target
        return tuple(side.pieces(look.ids or ()))

    def completed(self, texts: Sequence[Text]) -> Sequence[Text]:
        alone = [text for text in texts if text.asked is None]
        if not alone:
            return texts
        sources = [text.source[:-1] for text in alone]
        found = self._translator.search(sources, [[]] * len(alone))
        best = {text.line: several[0] for text, several in zip(alone, found, strict=True)}
        completed = []
        for text in texts:
            if (mine := best.get(text.line)) is not None:
                wanted = (*mine.tokens, *([END] if mine.finished else []))
                text = replace(_written(text, wanted), finished=mine.finished)
            completed.append(text)
        return completed

    def _run(self, texts: Sequence[Text]) -> None:
        device = self._translator.device
        source, real = padded([text.source for text in texts])
        asked, _ = padded([text.asked or () for text in texts])
        state = self.model.encode(source.to(device), real.to(device))
        self.model.features(asked.to(device), state)

    def _between(self, layer: str, trace: Trace) -> tuple[Side, Side]:
        return _SIDES[self.model.between(layer)]


def _written(text: Text, wanted: Sequence[int]) -> Text:
    return replace(text, asked=(BEGIN, *wanted[:-1]), wanted=tuple(wanted))

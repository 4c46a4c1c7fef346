"""What the page says about the model it shows."""

import asyncio
import math
import re
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from attlas.analysis.alignment import Reference
from attlas.errors import AttlasError
from attlas.explorer.beams import BeamRoutes, can_search
from attlas.explorer.cancellation import SearchTurns, run_while_connected
from attlas.explorer.doubt import DoubtRoutes, what_can_be_doubted
from attlas.explorer.gold import GoldRoutes, check_gold
from attlas.explorer.maps import MapRoutes, TextFacts, TextMaps
from attlas.explorer.mechanism import MechanismRoutes
from attlas.explorer.messages import BusyError, TranslationRequest, json_no_store, path_number
from attlas.inference.classifier import Classification, TextClassifier
from attlas.inference.forward_pass import ForwardPass
from attlas.inference.translator import translation_remarks
from attlas.recording import Trace
from attlas.runs import Run
from attlas.runs.facts import best_validation, languages

# What the explorer needs of a translator: one call from text to a translation that was watched.


@runtime_checkable
class TranslationProtocol(Protocol):
    """A translation and where the model looked for it; `inference.Translation` is one, and what
    `inference.huggingface.HuggingFaceModel` gives another."""

    @property
    def text(self) -> str | None:
        """What was written, as a person reads it; None where the model only reads."""

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
    def known(self) -> bool:
        """Whether any word of the source is in the vocabulary."""

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
class TranslatorProtocol(Protocol):
    """A model that translates while it is watched; `decoding.Translator` is one."""

    def __call__(self, text: str, prefix: str | Sequence[int] = "") -> TranslationProtocol:
        """Translate one text; the translation begins with `prefix`, a text or ids of tokens."""

    @property
    def facts(self) -> Mapping[str, str | int | float | None]:
        """What is known of the model: "parameters", and "run", its folder, where it has one.

        A model without a run may say its "name", its "task" (see `ModelFacts`), and the codes of
        its languages, "source_language" and "target_language".
        """


@runtime_checkable
class BoundedTranslatorProtocol(Protocol):
    """A translator that can be bounded; `decoding.Translator` is one."""

    def bounded(
        self, *, source: int, target: int, before_step: Callable[[], None]
    ) -> TranslatorProtocol:
        """The same, which refuses texts of more than `source` tokens and writes at most `target`.

        before_step is called before every step of a search; what it raises ends the search.
        """


@runtime_checkable
class RepeatableProtocol(Protocol):
    """What a model did with a text, where it can be run again."""

    @property
    def forward_pass(self) -> ForwardPass | None:
        """The pass of the trace; None where there is none."""


@runtime_checkable
class LimitedProtocol(Protocol):
    """What a model wrote, of which is known at what it was cut off."""

    @property
    def limit(self) -> str:
        """The limit, with its number, and what to do about it."""


def remarks_of(looked: TranslationProtocol) -> list[str]:
    """What a reader has to know of a text that was read, beside what was written."""
    limit = f"{len(looked.tokens):,} tokens, the greatest length of its search"
    if isinstance(looked, LimitedProtocol):
        limit = looked.limit
    return translation_remarks(looked.cut, looked.finished, looked.known, limit)


def prompt_of(looked: TranslationProtocol, known: Mapping[str, Any]) -> int:
    """How many tokens of the one text of a decoder were read, not written; 0 of other models."""
    return len(looked.source_tokens) if known.get("task") == "continue" else 0


# A classifier reads a text as a translator does; its label stands where a translation would.


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A classified text, as the page shows it."""

    found: Classification

    @property
    def text(self) -> str:
        """The label and its probability."""
        unknown = "" if self.found.known else " (none of its words is in the vocabulary)"
        return f"{self.found.label} · {100 * self.found.probability:.1f} %{unknown}"

    @property
    def source_tokens(self) -> Sequence[str]:
        """The tokens that were read."""
        return self.found.tokens

    @property
    def tokens(self) -> Sequence[str]:
        """None: it writes nothing."""
        return ()

    @property
    def score(self) -> float:
        """The logarithm of the label's probability."""
        return math.log(self.found.probability) if self.found.probability > 0 else -math.inf

    @property
    def finished(self) -> bool:
        """True: there is nothing to end."""
        return True

    @property
    def known(self) -> bool:
        """True: where no word is known, the text says so."""
        return True

    @property
    def cut(self) -> int:
        """How many tokens had no part in the label."""
        return self.found.unread

    @property
    def trace(self) -> Trace:
        """The attention of every layer."""
        return self.found.trace

    @property
    def blank(self) -> str:
        """Nothing: there is a trace."""
        return ""

    @property
    def forward_pass(self) -> ForwardPass:
        """The pass of the trace; an output for each label."""
        return self.found.forward_pass


class LabellingTranslator:
    """A classifier, to be asked as a translator is."""

    def __init__(self, classifier: TextClassifier, most_read: int | None = None) -> None:
        self._classifier, self._most_read = classifier, most_read

    @property
    def facts(self) -> Mapping[str, str | int | float | None]:
        """Its name, and how large it is."""
        known = self._classifier.facts
        name = Path(str(known["run"])).resolve().name if "run" in known else None
        return {"name": name, "task": "classify", "parameters": int(known["parameters"])}

    def bounded(
        self, *, source: int, target: int, before_step: Callable[[], None]
    ) -> "LabellingTranslator":
        """The same, which refuses longer texts; it reads in one step."""
        return LabellingTranslator(self._classifier, source)

    def __call__(self, text: str, prefix: str | Sequence[int] = "") -> LabelledText:
        """Classify one text.

        Raises:
            AttlasError: For a text that is too long, and for a prefix.
        """
        if prefix.strip() if isinstance(prefix, str) else prefix:
            raise AttlasError("a text alone", "a prefix beside it", "leave it out")
        size = len(self._classifier.vocabularies.text.encode(text))
        if self._most_read is not None and size > self._most_read:
            raise AttlasError(
                f"a text of at most {self._most_read:,} tokens",
                f"{size:,}",
                "type a shorter text; `attlas classify` takes whole files",
            )
        return LabelledText(self._classifier(text))


# Sentences as they are in the corpus that comes with attlas, and as in captions of pictures.
_EVERYDAY = {
    "en": "I do not want to go to school today.",
    "de": "Ich will heute nicht zur Schule gehen.",
}
_EXAMPLES = {
    "en": "A man in a blue shirt is reading a book.",
    "de": "Ein Mann in einem blauen Hemd liest ein Buch.",
    "fr": "Un homme en chemise bleue lit un livre.",
    "cs": "Muž v modré košili čte knihu.",
    "es": "Un hombre con una camisa azul lee un libro.",
    "it": "Un uomo con una camicia blu legge un libro.",
    "ja": "青いシャツを着た男の人が本を読んでいる。",
}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """None = not known, and then the page does not say it.

    Languages are codes such as "de". The BLEU is that of the best validation, over
    `bleu_sentences` sentences, with sacrebleu's signature.

    Args:
        attention: The score function, or "none".
        task: What the model does with a text. It may "translate", "continue" or "answer" it (an
            encoder–decoder of unknown use), "classify" it, or "read" it and write nothing.
    """

    name: str | None
    source_language: str | None
    target_language: str | None
    attention: str | None
    parameters: int | None
    bleu: float | None
    bleu_sentences: int | None
    bleu_signature: str | None
    example: str | None
    task: str = "translate"


def facts(translator: TranslatorProtocol) -> ModelFacts:
    """What is known about a translator and the run it came from."""
    known = translator.facts
    parameters = known.get("parameters")
    count = parameters if isinstance(parameters, int) else None
    if not isinstance(known.get("run"), str):
        return _facts_without_run(known, count)
    run = Run(Path(str(known["run"])))
    data = run.table("data")
    source, target = languages(data)
    attention = run.table("model").get("attention")
    best = best_validation(run.events())
    return ModelFacts(
        name=run.path.resolve().name,
        source_language=source,
        target_language=target,
        attention=attention if isinstance(attention, str) else None,
        parameters=count,
        bleu=best.get("bleu"),
        bleu_sentences=best.get("sentences"),
        bleu_signature=best.get("signature"),
        example=_example(source, data),
    )


_READ = {"read": "The cat sat on the mat because it was tired.", "continue": "Once upon a time"}


def _facts_without_run(
    known: Mapping[str, str | int | float | None], count: int | None
) -> ModelFacts:
    """Of a model that comes from elsewhere."""
    name, source, target = (
        str(known[fact]) if known.get(fact) else None
        for fact in ("name", "source_language", "target_language")
    )
    task = str(known.get("task", "translate"))
    example = _READ.get(task) or _EXAMPLES.get(source or "")
    return ModelFacts(
        name=name,
        source_language=source,
        target_language=target,
        attention=None,
        parameters=count,
        bleu=None,
        bleu_sentences=None,
        bleu_signature=None,
        example=example,
        task=task,
    )


def _example(language: str | None, data: Mapping[str, Any]) -> str | None:
    """A sentence of the kind that the model was trained on; None where none is known."""
    if language is None:
        return _symbols(data)
    known = _EVERYDAY if "direction" in data else _EXAMPLES
    return known.get(language)


def _symbols(data: Mapping[str, Any]) -> str | None:
    """A sequence of a toy task; its symbols are the numbers below `symbols`."""
    symbols, length = data.get("symbols"), data.get("length")
    if not isinstance(symbols, int) or not isinstance(length, Sequence):
        return None
    size = min(max(8, int(length[0])), int(length[-1]))
    return " ".join(str((5 * i + 2) % symbols) for i in range(size))


def _page_facts(notes: bool, sources: Sequence[str]) -> dict[str, Any]:
    """What the page is told of a trace and of a model alike."""
    several = {"sources": list(sources)} if len(sources) > 1 else {}
    return {"notes": notes, "parquet": find_spec("pyarrow") is not None, **several}


# A trace, asked by the page.


_PREVIEW = 60  # characters of a text by which it is chosen


class TraceBackend:
    """What the page asks, answered by one trace; its texts are the rows of the batch."""

    def __init__(
        self,
        trace: Trace,
        name: str | None,
        maps: MapRoutes,
        *,
        notes: bool = False,
        key: str | None = None,
        sources: Sequence[str] = (),
        gold: Sequence[Reference] | None = None,
    ) -> None:
        self._trace, self._name, self._maps = trace, name, maps
        self._page_facts = _page_facts(notes, sources) | ({} if gold is None else {"gold": True})
        self._texts = texts_of(trace)
        self._gold = gold
        if gold is not None:
            check_gold(gold, len(self._texts))
        # Of the same trace the same, so that what was answered about it stays true.
        self._key = key or secrets.token_hex(8)
        maps.when_missing = self._named
        self._mechanism = MechanismRoutes(maps, SearchTurns())

    @property
    def routes(self) -> list[Route]:
        """Where the page asks for facts, for the maps of a text, and for how weights came about."""
        return [
            Route("/model", self._model),
            Route("/texts/{row}", self._text),
            *self._mechanism.routes,
            *([] if self._gold is None else GoldRoutes(self._maps).routes),
        ]

    @property
    def known(self) -> Mapping[str, Any]:
        """What is known of the trace."""
        return {"name": self._name}

    async def _model(self, request: Request) -> Response:
        texts = [title for title, _, _ in self._texts]
        return json_no_store({"facts": self.known, "texts": texts, **self._page_facts})

    async def _text(self, request: Request) -> Response:
        row = path_number(request, "row")
        if row >= len(self._texts):
            raise HTTPException(404, "a text of this trace")
        return json_no_store(await run_in_threadpool(self._message, row))

    def _message(self, row: int) -> dict[str, Any]:
        return {
            "text": None,
            "score": None,
            "remarks": [],
            "blank": "",
            **self._maps.map_message(self._of(row), f"{self._key}.{row}"),
        }

    def _of(self, number: int) -> TextMaps:
        title, row, batch = self._texts[number]
        gold = None if self._gold is None else self._gold[number]
        text_maps = TextMaps.of(self._trace, row, batch)
        return replace(text_maps, gold=gold, facts=TextFacts(title))

    def _named(self, name: str) -> TextMaps | None:
        """The maps of this id, which an earlier server may have given out."""
        key, _, row = name.rpartition(".")
        if key != self._key or re.fullmatch("0|[1-9][0-9]{0,11}", row) is None:
            return None
        return self._of(int(row)) if int(row) < len(self._texts) else None


def texts_of(trace: Trace) -> list[tuple[str, int, int]]:
    """How each text of a trace begins, its batch row, and how many rows its layers have.

    Layers with other numbers of rows, as in a beam search, are of other texts at one row.

    Raises:
        AttlasError: For an empty trace.
    """
    if not trace:
        raise AttlasError(
            "a trace with attention maps",
            "an empty one",
            "run the model inside of attlas.observe",
        )
    calls = (call for name in trace for call in trace.calls(name))
    sizes = dict.fromkeys(call.shape[0] for call in calls)
    texts = []
    for batch in sizes:
        for row in range(batch):
            title = _preview(trace, row, batch)
            if len(sizes) > 1:
                title = f"row {row} of {batch}" + (f": {title}" if title else "")
            texts.append((title, row, batch))
    return texts


def _preview(trace: Trace, row: int, batch: int) -> str:
    """The beginning of a text, "" where the tokens of so many have no names."""
    sides = [trace.source, trace.target]
    sides += [side for layer in trace for side in trace.tokens(layer)]
    tokens = next((side[row] for side in sides if len(side) == batch and side[row]), ())
    marked = any(token.startswith("▁") for token in tokens)
    text = ("" if marked else " ").join(tokens[:_PREVIEW]).replace("▁", " ").strip()
    return text if len(text) <= _PREVIEW else f"{text[: _PREVIEW - 1].rstrip()}…"


# A translator, asked by the page.


MOST_READ = 512  # tokens of a text: attention of a longer one takes a page's patience and memory
MOST_WRITTEN = 1024  # tokens of a translation, where the translator takes a limit
MOST_KEPT = 256 * 2**20  # bytes of maps
_AT_ONCE = 4  # searches that take turns; each holds memory
_MOST_WAITING = 16  # texts beyond those


class TranslatorBackend:
    """What the page asks, answered by one translator; a few searches go on in turn."""

    def __init__(
        self,
        translator: TranslatorProtocol,
        maps: MapRoutes,
        *,
        notes: bool = False,
        sources: Sequence[str] = (),
    ) -> None:
        self._page_facts = _page_facts(notes, sources)
        self._translator = translator
        self._facts = asdict(facts(translator))  # what is wrong with a run is said at the start
        self._maps = maps
        self._turns = SearchTurns()  # one model: two steps at once are both slower
        self._doubt = DoubtRoutes(maps, self._turns)
        self._mechanism = MechanismRoutes(maps, self._turns)
        self._beams = BeamRoutes(self._bounded, maps, self._turns)
        self._semaphore = asyncio.Semaphore(_AT_ONCE)
        self._num_requests = 0

    @property
    def routes(self) -> list[Route]:
        """Where the page asks for facts and for translations."""
        return [
            Route("/model", self._model),
            Route("/translate", self._translate, methods=["POST"]),
            *self._doubt.routes,
            *self._mechanism.routes,
            *self._beams.routes,
        ]

    @property
    def known(self) -> Mapping[str, Any]:
        """What is known of the model: `ModelFacts`."""
        return self._facts

    async def _model(self, request: Request) -> Response:
        return json_no_store({"facts": self._facts, "texts": None, **self._page_facts})

    async def _translate(self, request: Request) -> Response:
        question = await TranslationRequest.read(request)
        if self._num_requests >= _AT_ONCE + _MOST_WAITING:
            raise BusyError(
                f"at most {_MOST_WAITING} texts that wait", "one more", "ask again in a minute"
            )
        self._num_requests += 1
        try:
            async with self._semaphore:
                if await request.is_disconnected():  # the page asked something newer meanwhile
                    raise ClientDisconnect
                message = await run_while_connected(
                    request, lambda stop: self._message(question, stop)
                )
        finally:
            self._num_requests -= 1
        return json_no_store(message)

    def _message(self, question: TranslationRequest, stop: threading.Event) -> dict[str, Any]:
        with self._turns.taken(stop) as next_turn:
            looked = self._bounded(next_turn)(question.text, question.prefix)
            next_turn()  # before it is read again, for where the model looked
            return self._of(looked, question)

    def _bounded(self, before_step: Callable[[], None]) -> Callable[..., TranslationProtocol]:
        translator = self._translator
        if not isinstance(translator, BoundedTranslatorProtocol):
            return translator
        return translator.bounded(source=MOST_READ, target=MOST_WRITTEN, before_step=before_step)

    def _of(self, looked: TranslationProtocol, question: TranslationRequest) -> dict[str, Any]:
        remarks, prompt = remarks_of(looked), prompt_of(looked, self._facts)
        text_maps = None
        if looked.trace is not None:
            said = TextFacts(question.text, looked.text, tuple(remarks), prompt)
            text_maps = replace(TextMaps.of(looked.trace), facts=said)
        if text_maps is not None and isinstance(looked, RepeatableProtocol):
            requested = question if can_search(self._translator) else None
            text_maps = replace(text_maps, forward_pass=looked.forward_pass, requested=requested)
        return {
            "text": looked.text,
            "score": looked.score if math.isfinite(looked.score) else None,
            "source": list(looked.source_tokens),
            "target": list(looked.tokens),
            "remarks": remarks,
            "prompt": prompt,
            "blank": looked.blank,
            "beams": bool(text_maps and text_maps.forward_pass and text_maps.requested),
            "doubt": what_can_be_doubted(text_maps) if text_maps is not None else None,
            **self._maps.map_message(text_maps),
        }

"""From text to text."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar, overload

import torch
from torch import nn

from attlas._parallel import POSSIBLE, ForkPool, ThreadPool, WorkCounter, map_shares
from attlas._text import whole_text
from attlas.data import Vocabularies, batches_by_length
from attlas.data.vocabulary import BEGIN, END, PAD, UNKNOWN
from attlas.decoding.config import DecodingConfig, check_in_use, idle_settings, with_method
from attlas.decoding.decode import UNBOUNDED, Bounds, SearchInput, check_room, decode_all
from attlas.decoding.scoring import Hypothesis
from attlas.decoding.static_search import check_static
from attlas.decoding.surface import Surface, in_one_line
from attlas.errors import AttlasError, DataError, quoted
from attlas.inference.alignment import (
    Line,
    Link,
    TeacherForcedTrace,
    check_has_cross_attention,
    most_attended_words,
    pharaoh,
    teacher_forced_attention,
    trace_teacher_forced,
    with_words,
    words_linked,
    words_of_tokens,
)
from attlas.inference.forward_pass import ForwardPass, translation_pass
from attlas.models.encoder_decoder import SequenceToSequence
from attlas.ops.linear import check_autocast, is_bf16_matmul, is_traced_or_transformed
from attlas.recording import Trace
from attlas.recording.hooks import is_observed, without_recording
from attlas.runs import CONFIG, FromRun, Run

# What a reader has to know of a translation beside its text.


def translation_remarks(
    cut: int, finished: bool, known: bool, limit: str = "the greatest length"
) -> list[str]:
    """Of a `Translation` that is cut, unfinished or of unknown words, in sentences; else none.

    Args:
        limit: At what an unfinished one was cut off, and what to do about it.
    """
    notes = []
    if not known:
        notes.append(
            "None of its words is in the vocabulary, so the translation says nothing about it."
        )
    if cut:
        tokens = "token was" if cut == 1 else f"{cut:,} tokens were"
        notes.append(
            f"The text is longer than this model is set to read: its last {tokens} left out."
        )
    if not finished:
        notes.append(f"The model did not end what it wrote: it was cut off at {limit}.")
    return notes


NOTHING_KNOWN, CUT, UNFINISHED = (
    "None of their words is in the vocabulary, so the translations say nothing about them.",
    "These texts are longer than this model is set to read: their last tokens were left out.",
    "The model did not end these translations: they were cut off at their longest.",
)
"""The same of many translations at once."""


# Batches decoded in parallel.


Item = TypeVar("Item")
Found = TypeVar("Found")


def num_parallel(model: nn.Module) -> int:
    """How many items `parallel_map` has in work at once with this model, if there are so many."""
    device = next((p.device.type for p in model.parameters()), "cpu")
    single_thread = (
        is_observed(model)
        or torch.is_autocast_enabled("cpu")
        or is_bf16_matmul()
        or is_traced_or_transformed()
    )
    if device != "cpu" or single_thread:
        return 1
    return torch.get_num_threads()


def parallel_map(
    function: Callable[[Item], Found], items: Sequence[Item], model: nn.Module
) -> list[Found]:
    """[work(item) for item in items], on a CPU with as many threads as torch may use.

    The products of a decoder's step are too small to be divided: two threads that share each of
    them are hardly faster than one, and may be slower. So each item has one thread of its own, and
    torch lets go of Python's lock while it computes. Begun in the order of the items; what comes
    out is the same as one after the other, which is how it is done where there is one thread or
    one item, while a listener is active (listeners belong to their thread, and so do
    autocast and modes that see every operator), and on other devices.
    """
    threads = min(num_parallel(model), len(items))
    if threads < 2:
        return [function(item) for item in items]
    num_threads = torch.get_num_threads()
    try:
        with ThreadPool(threads, "attlas-search", torch.set_num_threads, (1,)) as pool:
            return list(pool.map(function, items))
    finally:
        torch.set_num_threads(num_threads)  # that of a thread is also what later ones begin with


# What a translator answers.


@dataclass(frozen=True, kw_only=True)
class Translation:
    """One translated text; its trace is computed on first access.

    An empty text (or white space alone) has the empty translation: no tokens, score 0, and no
    trace.

    Args:
        text: The translation, in one line.
        tokens: One label per token for the axis of a map, END included where the hypothesis is
            finished.
        score, log_probability, finished: Those of the `Hypothesis`.
        cut: How many source tokens were left out because the source is longer than
            `DecodingConfig.max_source_length`, or than the model's positions; 0 = translated whole.
        known: Whether any word of the source is, at least in part, in the vocabulary. Otherwise
            the translation says nothing about the source.
        alternatives: The rest of the n-best list, best first.
    """

    text: str
    source_text: str
    tokens: tuple[str, ...]
    score: float
    log_probability: float
    finished: bool
    cut: int
    known: bool
    alternatives: tuple["Translation", ...]
    _source_tokens: Callable[[], tuple[str, ...]] = field(repr=False, compare=False)
    _trace_teacher_forced: Callable[[Sequence[str]], TeacherForcedTrace] = field(
        repr=False, compare=False
    )
    _words: Callable[[tuple[Link, ...]], tuple[Link, ...]] = field(repr=False, compare=False)
    _forward_pass: Callable[[Sequence[str]], ForwardPass | None] = field(repr=False, compare=False)

    @cached_property
    def source_tokens(self) -> tuple[str, ...]:
        """One label per source token that was read, for the axis of a map; END included."""
        return self._source_tokens()

    @cached_property
    def teacher_forced(self) -> TeacherForcedTrace:
        """One teacher-forced pass of the model over this translation, made once.

        It uses the model's weights at the first access, so access it before training further.
        """
        return self._trace_teacher_forced(self.source_tokens)

    @property
    def trace(self) -> Trace | None:
        """The attention of every layer, labelled; None where `blank` says why there is none."""
        return self.teacher_forced.trace

    @property
    def blank(self) -> str:
        """Why there is no trace; "" where there is one."""
        return self.teacher_forced.blank

    @property
    def forward_pass(self) -> ForwardPass | None:
        """The teacher-forced pass of the trace, to be run again; None where there is no trace."""
        return self._forward_pass(self.source_tokens)

    @property
    def alignment(self) -> tuple[Link, ...]:
        """(source token, target token) links by the highest attention; END is never linked."""
        return self.teacher_forced.alignment

    @cached_property
    def word_alignment(self) -> tuple[Link, ...]:
        """(source word, target word) links, where words are what white space separates."""
        return self._words(self.alignment)

    @property
    def pharaoh(self) -> str:
        """`word_alignment` as "i-j i-j …"."""
        return pharaoh(self.word_alignment)


Batches = Sequence[Sequence[Sequence[int]]]
"""Of each batch the ids of each source, without END."""

_HYPOTHESES = 2048  # that are searched for at a time: each has probabilities of all words
_BEAMS, _MOST_BEAMS = 5, 10  # hypotheses that are shown of a search
_DRAWS = 4  # times as many, where some read alike
_MOST_FORKS = 16  # with more, a window of lines makes batches that are too small


class Translator(FromRun):
    """translator("text") → `Translation`: translate texts with a run.

    Several threads may call it at once. The translation of a text does not depend on the other
    texts, except for rounding.

    Args:
        run: A `Run`, or the path of one.
        config: How to search; None = as the recipe of the run says.
        checkpoint: "best", "last", "averaged", or a number, as in `Run.checkpoints`.
        device: A device of torch, or "auto".

    Example:
        >>> from attlas.data.vocabularies import Vocabularies
        >>> from attlas.data.vocabulary import Words
        >>> from attlas.models import RecurrentConfig, build
        >>> words = Words.built(["a b c"], 100)
        >>> model = build(RecurrentConfig(embed_dim=8, hidden_dim=8), len(words))
        >>> translator = Translator.of(model, Vocabularies(words, words))
        >>> [translation.cut for translation in translator(["a b", "c"])]
        [0, 0]
    """

    def __init__(
        self,
        run: Run | Path | str,
        config: DecodingConfig | None = None,
        *,
        checkpoint: str = "best",
        device: str = "cpu",
    ) -> None:
        opened_run = run if isinstance(run, Run) else Run(run)
        if config is None:
            config = DecodingConfig.read(
                opened_run.table("decoding"), str(opened_run.path / CONFIG)
            )
        model = opened_run.model(checkpoint, device)
        self._set_up(
            model,
            opened_run.vocabularies(),
            config,
            {"run": str(opened_run.path), "checkpoint": checkpoint},
        )

    @classmethod
    def from_pretrained(
        cls,
        name: Path | str,
        config: DecodingConfig | None = None,
        *,
        checkpoint: str = "best",
        device: str = "cpu",
        **options: Any,
    ) -> "Translator":
        """The translator of a run in a folder, or of the Hugging Face Hub by its name.

        Args:
            options: `revision`, `cache_dir`, `token` and `local_files_only`; see
                `Run.from_pretrained`.
        """
        run = Run.from_pretrained(name, **options)
        return Translator(run, config, checkpoint=checkpoint, device=device)

    @classmethod
    def of(
        cls,
        model: SequenceToSequence[Any],
        vocabularies: Vocabularies,
        config: DecodingConfig | None = None,
    ) -> "Translator":
        """Make a translator from a model, which is put into evaluation mode."""
        translator = cls.__new__(cls)
        translator._set_up(model.eval(), vocabularies, config or DecodingConfig(), {})
        return translator

    def _set_up(
        self,
        model: SequenceToSequence[Any],
        vocabularies: Vocabularies,
        config: DecodingConfig,
        origin: Mapping[str, str],
    ) -> None:
        self.model, self.vocabularies = model, vocabularies
        self.device = next((p.device for p in model.parameters()), torch.device("cpu"))
        self._set_config(config)
        self._surface = Surface(vocabularies.target)
        self._origin = dict(origin)
        self._most_read: int | None = None  # source tokens, beyond which a text is refused
        self._bounds = UNBOUNDED
        self._own_prefix: Sequence[int] = ()  # the tokens with which each translation begins
        self._forks: ForkPool[Batches, list[list[list[Hypothesis]]]] | None = None
        self._ended = WorkCounter()

    @property
    def num_ended(self) -> int:
        """For how many texts a search has ended, of all calls so far, also in child processes.

        It grows while a call is under way, so that another thread can show how far it is. A text
        that is searched for once more counts twice; an empty one, or one alone, not at all.
        """
        return self._ended.total

    def _set_config(self, config: DecodingConfig) -> None:
        max_positions = self.model.max_positions
        check_room(config, max_positions)
        check_autocast(config.autocast, self.device, "decoding.autocast")
        if config.cuda_graphs:
            check_static(self.model, self.device)
        if config.unknown == "replace":
            check_has_cross_attention(self.model)
        self.config = config
        # Tokens of a source that are read, without its end; None: all.
        limits = [config.max_source_length or None, max_positions and max_positions - 1]
        self._max_source_length = min(
            (limit for limit in limits if limit is not None), default=None
        )

    def with_settings(self, **settings: Any) -> Self:
        """This translator, searching by other settings: `with_settings(num_beams=10)`.

        The settings are those of `DecodingConfig`. Settings that belong only to another method are
        dropped. Without `method`, `num_beams` implies "beam", and `temperature`, `top_k` and
        `top_p` imply "sample".

        Raises:
            AttlasError: For an unknown setting, and for a wrong value.
        """
        settings = with_method(settings)
        method = settings.get("method", self.config.method)
        idle = idle_settings(method) if isinstance(method, str) else frozenset()
        if method != self.config.method:
            idle |= {"n_best"}  # which has another meaning there
        values = {name: value for name, value in self.config if name not in idle}
        other = copy(self)
        other._forks = None  # its processes keep their settings
        other._set_config(DecodingConfig.read({**values, **settings}, "the call"))
        check_in_use(other.config.method, settings)
        return other

    def bounded(
        self,
        *,
        source: int | None = None,
        target: int | None = None,
        before_step: Callable[[], None] | None = None,
    ) -> Self:
        """This translator with bounds, for a server: it shares the model.

        Args:
            source: A text of more tokens than this is refused.
            target: Tokens that are written at most; what has not ended by then is returned as
                unfinished.
            before_step: Called before every step of a search; what it raises ends the search.
        """
        if (source is not None and source < 1) or (target is not None and target < 1):
            raise AttlasError("bounds of at least 1", f"{source} and {target}", "raise them")
        translator = copy(self)
        translator._most_read, translator._bounds = source, Bounds(target, before_step)
        return translator

    @property
    def facts(self) -> Mapping[str, str | int | float | None]:
        """Facts about the model, for a page or a report."""
        return {
            **self._origin,
            "model": type(self.model).__name__,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "source vocabulary": len(self.vocabularies.source),
            "target vocabulary": len(self.vocabularies.target),
            **self.config.model_dump(exclude_none=True),
        }

    @overload
    def __call__(
        self, text: str, prefix: str | Sequence[int] = "", **settings: Any
    ) -> Translation: ...

    @overload
    def __call__(
        self,
        text: list[str] | tuple[str, ...],
        prefix: str | Sequence[int] = "",
        **settings: Any,
    ) -> list[Translation]: ...

    def __call__(
        self,
        text: str | list[str] | tuple[str, ...],
        prefix: str | Sequence[int] = "",
        **settings: Any,
    ) -> Translation | list[Translation]:
        """Translate one text, which counts as one line, or a list of texts.

        The translation begins with `prefix`.

        A prefix of white space alone is none. It may be the ids of its tokens in the target
        vocabulary, without BEGIN and END.

        Args:
            settings: Of the search, for this call alone, as in `translator(text, num_beams=10)`;
                see `with_settings`. A list is translated as by `stream`.

        Raises:
            AttlasError: For anything but text, for a prefix to an empty text, whose translation is
                always empty, for one with words that the vocabulary has not, and for half of a
                surrogate pair in either.
        """
        if settings:
            return self.with_settings(**settings)(text, prefix)
        if isinstance(text, list | tuple):
            return self._listed(text, prefix)
        _check_text(text, "for several texts call translator(list(texts)) or translator.stream")
        line = self._read(text)
        given = self._prefix_ids(prefix)
        prefix_ids = given or self._own_prefix
        if given and not line.ids:
            raise DataError(
                "a text to translate with the prefix", "an empty text", "leave the prefix out"
            )
        if not line.ids:
            return _empty(line)
        return self._with_alternatives(line, prefix_ids, *self.search([line.ids], [prefix_ids]))

    def _listed(self, texts: Sequence[str], prefix: str | Sequence[int]) -> list[Translation]:
        prefix_ids = self._prefix_ids(prefix)
        for text in texts:
            _check_text(text, "pass a list of str")
        translator = self.with_prefix(prefix_ids) if prefix_ids else self
        return list(translator.stream(texts))

    def beams(self, text: str, prefix: str | Sequence[int] = "") -> list[Translation]:
        """The hypotheses of a beam search, best first: the n-best list of `num_beams`.

        Args:
            prefix: As of a call.

        Raises:
            AttlasError: As of a call.
        """
        settings = {"method": "beam", "num_beams": self.num_beams, "n_best": self.num_beams}
        if self.config.method == "beam" and self.config.num_beams > self.num_beams:
            del settings["num_beams"]  # only the first of them are shown
        best = self(text, prefix, **settings)
        return [best, *best.alternatives]

    @property
    def num_beams(self) -> int:
        """How many hypotheses `beams` returns at most: 5 where the search is no beam search."""
        own = self.config.num_beams if self.config.method == "beam" else 1
        return min(own, _MOST_BEAMS) if own > 1 else _BEAMS

    @property
    def closed_ids(self) -> frozenset[int]:
        """Ids that no prefix has: those of padding, of the begin and of the end, and of <unk> where
        it is never written."""
        forbidden = {UNKNOWN} if self.config.unknown == "forbid" else set()
        return frozenset({PAD, BEGIN, END, *forbidden})

    def with_prefix(self, prefix: str | Sequence[int]) -> "Translator":
        """This translator with a prefix: every translation, except of an empty text, begins with
        it.

        Raises:
            AttlasError: For a prefix of white space alone, for one with unknown words, and for half
                of a surrogate pair.
        """
        prefix_ids = self._prefix_ids(prefix, "write the words with which translations begin")
        if not prefix_ids:
            raise AttlasError("a prefix", repr(prefix), "write a word, or leave it out")
        prefixed = copy(self)
        prefixed._own_prefix = prefix_ids
        return prefixed

    def _prefix_ids(
        self, prefix: str | Sequence[int], advice: str = "leave the prefix out if there is none"
    ) -> Sequence[int]:
        if not isinstance(prefix, str):
            return self._checked_ids(prefix, advice)
        prefix_ids = self.vocabularies.target.encode(whole_text(prefix)) if prefix.strip() else []
        if UNKNOWN in prefix_ids:
            raise DataError(
                "a prefix of words that the model can write",
                f"{quoted(prefix)}, a part of which is not in its vocabulary",
                "choose other words",
            )
        return prefix_ids

    def _checked_ids(self, prefix: object, advice: str) -> Sequence[int]:
        size = len(self.vocabularies.target)
        if not isinstance(prefix, list | tuple) or any(type(id_) is not int for id_ in prefix):
            raise AttlasError("one text, a str, or a list of ids", type(prefix).__name__, advice)
        wrong = [id_ for id_ in prefix if not 0 <= id_ < size or id_ in self.closed_ids]
        if wrong:
            raise AttlasError(
                f"a prefix of ids of tokens below {size:,}",
                str(wrong[0]),
                "leave padding, begin and end out of it",
            )
        return tuple(prefix)

    def stream(
        self,
        texts: Iterable[str],
        *,
        window: int = 1024,
        tokens: int = 16384,
        rows: int | None = None,
    ) -> Iterator[Translation]:
        """One translation per text, in the order of the texts, while they come in.

        For speed, `window` texts at a time are sorted by length and translated in batches of at
        most `tokens` padded source tokens (a longer text is a batch of its own) and of at most
        `rows` texts (None: as many as have 2,048 hypotheses, each of which takes memory), on a CPU
        as many side by side as torch has threads (`parallel_map`); the last few of a batch go on
        with the next (`decode_all`). None of this changes what comes out, but for the rounding of
        floats. Nothing comes out before a window is full or the texts end: window = 1 answers each
        text at once.

        Raises:
            AttlasError: At once for no texts and for sizes below 1, and at its turn for anything
                that is no text, or half of a surrogate pair.
        """
        if isinstance(texts, str):
            raise AttlasError("several texts", "one text", "pass a list, or call translator(text)")
        if not isinstance(texts, Iterable):
            raise AttlasError("several texts", type(texts).__name__, "pass a list of str")
        if window < 1 or tokens < 1 or (rows is not None and rows < 1):
            sizes = f"{window} and {tokens}" if rows is None else f"{window}, {tokens} and {rows}"
            raise AttlasError("a window and a batch of at least 1", sizes, "raise them")
        return self._windows(iter(texts), window, tokens, rows)

    @contextmanager
    def forked(self) -> Iterator["Translator"]:
        """`with translator.forked() as faster`: one whose `stream` searches in child processes.

        As many as torch has threads, up to 16, and only where that is faster: on a CPU, on Linux,
        while no listener is active; elsewhere it is this one. The children see the model as
        it is now. For a program that does nothing but translate, before it opens what it writes:
        see `ForkPool`.
        """
        count = min(num_parallel(self.model), _MOST_FORKS)
        if count < 2 or not POSSIBLE:
            yield self
            return
        with ForkPool(self.search_all, count) as forks:
            faster = copy(self)
            faster._forks = forks
            try:
                yield faster
            finally:
                faster._forks = None

    def _windows(
        self, texts: Iterator[str], window: int, tokens: int, rows: int | None
    ) -> Iterator[Translation]:
        while lines := [self._read(text) for text in islice(texts, window)]:
            sources = [line.ids for line in lines]
            batches = batches_by_length(sources, tokens, rows or self._rows, self._num_workers)
            yield from self._in_batches(lines, batches)

    @property
    def _rows(self) -> int:
        """How many lines are searched for at a time, by default."""
        rows_by_method = {"greedy": 1, "beam": self.config.num_beams, "sample": self.config.n_best}
        return max(1, _HYPOTHESES // rows_by_method[self.config.method])

    def _in_batches(
        self, lines: Sequence[Line], batches: Sequence[Sequence[int]]
    ) -> list[Translation]:
        """One translation for each line; a batch is a list of indices of lines."""
        sources = [[lines[p].ids for p in indices if lines[p].ids] for indices in batches]
        costs = [sum(map(len, of_batch)) for of_batch in sources]
        searched = map_shares(self._searched, sources, costs, self._num_workers)
        translations: dict[int, Translation] = {}
        for indices, hypotheses_of_part in zip(batches, searched, strict=True):
            hypotheses = iter(hypotheses_of_part)
            for index in indices:
                line = lines[index]
                if line.ids:
                    translations[index] = self._with_alternatives(
                        line, self._own_prefix, next(hypotheses)
                    )
                else:
                    translations[index] = _empty(line)
        return [translations[index] for index in range(len(lines))]

    @property
    def _num_workers(self) -> int:
        """The number of workers that share the batches."""
        max_threads = num_parallel(self.model)
        return len(self._forks) if self._forks and max_threads > 1 else max_threads

    def _searched(self, shares: Sequence[Batches]) -> list[list[list[list[Hypothesis]]]]:
        if self._forks and len(shares) > 1:
            return self._forks.map(shares)
        return parallel_map(self.search_all, shares, self.model)

    def _read(self, text: str) -> Line:
        _check_text(text, "pass each text as a str")
        # As the lines of a file end.
        text = text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")
        if not text.strip():
            return Line(text, (), 0)
        ids = self.vocabularies.source.encode(whole_text(text))
        ids_read = ids[: self._max_source_length]
        if self._most_read is not None and len(ids_read) > self._most_read:
            raise DataError(
                f"a text of at most {self._most_read:,} tokens",
                f"{len(ids_read):,}",
                "translate one sentence at a time; `attlas translate` takes whole files",
            )
        return Line(text, tuple(ids_read), len(ids) - len(ids_read))

    def search(
        self, sources: Sequence[Sequence[int]], prefixes: Sequence[Sequence[int]]
    ) -> list[list[Hypothesis]]:
        """The n-best list of each source (ids without END), which begins with its prefix."""
        inputs = [SearchInput.of(sources, self.device, prefixes)]
        return self._decode_all(inputs)[0]

    def search_all(self, batches: Batches) -> list[list[list[Hypothesis]]]:
        """The n-best lists of each batch, by `search` where a subclass has one of its own."""
        if type(self).search is not Translator.search:
            return [self.search(sources, [self._own_prefix] * len(sources)) for sources in batches]
        inputs = [SearchInput.of(s, self.device, [self._own_prefix] * len(s)) for s in batches]
        return self._decode_all(inputs)

    def _decode_all(self, inputs: Sequence[SearchInput]) -> list[list[list[Hypothesis]]]:
        is_alone = sum(len(one.source) for one in inputs) == 1  # nobody counts to one
        on_ended = None if is_alone else self._ended.add
        return decode_all(self.model, inputs, self.config, self._bounds, self._surface, on_ended)

    def _with_alternatives(
        self, line: Line, prefix_ids: Sequence[int], hypotheses: Sequence[Hypothesis]
    ) -> Translation:
        """The translation of a line, of its n-best list, which begins with these tokens."""
        texts = self._texts(line, hypotheses)
        longer = self._with_longer_lists
        # Some may read alike, now that words stand for <unk>.
        if len(texts) < len(hypotheses) and longer.config != self.config:
            with without_recording():
                more = longer.search([line.ids], [prefix_ids])[0]
            texts = self._texts(line, more)[: len(hypotheses)]
        best, *others = texts
        return self._translation(
            line, best, [self._translation(line, hypothesis) for hypothesis in others]
        )

    @property
    def _with_longer_lists(self) -> Self:
        """This translator with n-best lists that are as long as the search allows, for a few."""
        n_best = self.config.n_best
        max_n_best = self.config.num_beams if self.config.method == "beam" else _DRAWS * n_best
        longer = copy(self)
        longer.config = self.config.model_copy(update={"n_best": max(n_best, max_n_best)})
        return longer

    def _texts(self, line: Line, hypotheses: Sequence[Hypothesis]) -> list["_Written"]:
        """What they read as, best first; of those that read alike the best."""
        by_text: dict[str, _Written] = {}
        for hypothesis in hypotheses:
            record = self._written(line, hypothesis)
            by_text.setdefault(record.text, record)
        return list(by_text.values())

    def _written(self, line: Line, hypothesis: Hypothesis) -> "_Written":
        target, tokens = self.vocabularies.target, hypothesis.tokens
        if self.config.unknown == "replace" and UNKNOWN in tokens:
            weights = teacher_forced_attention(self.model, line.ids, tokens)
            words = most_attended_words(weights, self.vocabularies.source, line)
            text, of_tokens = with_words(target, tokens, words)
            return _Written(hypothesis, in_one_line(text), partial(list, of_tokens))
        text = self._surface.text(tokens)
        return _Written(hypothesis, text, partial(words_of_tokens, target, tokens, text))

    def _translation(
        self, line: Line, record: "_Written", alternatives: Sequence[Translation] = ()
    ) -> Translation:
        source, target = self.vocabularies.source, self.vocabularies.target
        hypothesis = record.hypothesis
        ended = [END] if hypothesis.finished else []
        tokens = tuple(target.pieces([*hypothesis.tokens, *ended]))
        return Translation(
            text=record.text,
            source_text=line.text,
            tokens=tokens,
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            finished=hypothesis.finished,
            cut=line.cut,
            known=source.knows(line.text, line.ids),
            alternatives=tuple(alternatives),
            _source_tokens=partial(line.tokens, source),
            _trace_teacher_forced=partial(
                trace_teacher_forced,
                self.model,
                line.ids,
                hypothesis.tokens,
                hypothesis.finished,
                tokens=tokens,
            ),
            _words=partial(words_linked, source, line, record.words),
            _forward_pass=partial(
                translation_pass,
                self.model,
                line.ids,
                hypothesis.tokens,
                hypothesis.finished,
                target,
                tokens=tokens,
            ),
        )


class _Written(NamedTuple):
    """A hypothesis, its text, and the words of that to which its tokens belong."""

    hypothesis: Hypothesis
    text: str
    words: Callable[[], list[tuple[int, ...]]]


def _check_text(text: object, advice: str) -> None:
    if not isinstance(text, str):
        raise AttlasError("one text, a str", type(text).__name__, advice)


def _empty(line: Line) -> Translation:
    return Translation(
        text="",
        source_text=line.text,
        tokens=(),
        score=0.0,
        log_probability=0.0,
        finished=True,
        cut=0,
        known=True,
        alternatives=(),
        _source_tokens=tuple,
        _trace_teacher_forced=_nothing,
        _words=tuple,
        _forward_pass=_no_pass,
    )


def _nothing(source_tokens: Sequence[str]) -> TeacherForcedTrace:
    return TeacherForcedTrace(None, (), "the text is empty")


def _no_pass(source_tokens: Sequence[str]) -> None:
    return None

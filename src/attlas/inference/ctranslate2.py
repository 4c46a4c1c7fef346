"""A translator whose search is CTranslate2's."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from shlex import join
from typing import Any

import torch

from attlas._files import existing, parse_json, stored_bytes
from attlas.config import Config
from attlas.data import BEGIN, END, PAD
from attlas.decoding import DecodingConfig, Hypothesis
from attlas.decoding.decode import UNBOUNDED
from attlas.decoding.scoring import ranked
from attlas.decoding.surface import best_texts
from attlas.errors import CheckpointError, UnsupportedError, join_names, missing_extra
from attlas.export.ctranslate2 import longest, names
from attlas.export.export import ORIGIN
from attlas.inference.translator import Translator
from attlas.models import Transformer
from attlas.runs import BEST, Run
from attlas.runs.loaded import LoadedCheckpoint, LoadedTranslator, file_digests

# Overflow of 8-bit products on some CPUs.


def saturates() -> bool:
    """Return True if sums of 8-bit products may overflow on this CPU.

    An x86 without VNNI adds pairs of such products in 16 bits and saturates: log P of a translation
    was wrong by a tenth and more. If the CPU's features are unknown, return True.
    """
    # Older releases of torch cannot say.
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    if capabilities.get("architecture", "x86_64") not in ("x86_64", "i386"):
        return False
    return not (capabilities.get("avx512_vnni") or capabilities.get("avx_vnni"))


# The hypotheses that attlas's beam search would have found when it stops.


def length_penalty(factors: int, alpha: float) -> float:
    """((5 + factors) / 6)^α, as in `Penalties`."""
    return float(((5.0 + factors) / 6.0) ** alpha)


def found_in_time(
    hypotheses: Sequence[Hypothesis],
    sums: Sequence[Sequence[float]],
    texts: Sequence[str],
    n_best: int,
    alpha: float,
) -> list[Hypothesis]:
    """The hypotheses of one sentence, without those that come after attlas would have stopped.

    `beam_search` takes the best for settled when it scores at least log P / lp of the most probable
    alive one, lp being that of its present length and END; what finishes later and scores higher is
    left out. It stops when the n_best-th of different texts is settled in the same way. Of the
    alive ones those are known that became one of the hypotheses.

    sums[h][n]: log P of the first n + 1 tokens of hypothesis h. With something lower in its place
    the stop comes too early, never too late: what is found then is found in any case.
    """
    ceiling = math.inf
    for step in range(max(len(hypothesis.tokens) for hypothesis in hypotheses)):
        finished = [
            (hypothesis, text)
            for hypothesis, text in zip(hypotheses, texts, strict=True)
            if hypothesis.finished
            and len(hypothesis.tokens) <= step
            and hypothesis.score <= ceiling
        ]
        best_possible = max(
            log_probability[step]
            for hypothesis, log_probability in zip(hypotheses, sums, strict=True)
            if len(hypothesis.tokens) > step
        )
        of_texts: dict[str, float] = {}
        for hypothesis, text in finished:
            of_texts[text] = max(hypothesis.score, of_texts.get(text, hypothesis.score))
        scores = sorted(of_texts.values(), reverse=True)
        bound = best_possible / length_penalty(step + 2, alpha)
        if len(scores) >= n_best and bound <= scores[n_best - 1]:
            return [hypothesis for hypothesis, _ in finished]
        if scores and bound <= scores[0]:
            ceiling = min(ceiling, scores[0])
    return [
        hypothesis
        for hypothesis in hypotheses
        if not hypothesis.finished or hypothesis.score <= ceiling
    ]


def best_in_time(
    hypotheses: Sequence[Hypothesis], sums: Sequence[Sequence[float]], alpha: float
) -> Hypothesis:
    """The best of `found_in_time` with n_best = 1, without the texts and in fewer steps."""
    overall = ranked(hypotheses)[0]
    if not overall.finished:
        return overall
    finished = [hypothesis for hypothesis in hypotheses if hypothesis.finished]
    first = min(len(hypothesis.tokens) for hypothesis in finished)
    for step in range(first, len(overall.tokens)):
        best = max(one.score for one in finished if len(one.tokens) <= step)
        alive = max(
            of_one[step]
            for of_one, one in zip(sums, hypotheses, strict=True)
            if len(one.tokens) > step
        )
        if alive / length_penalty(step + 2, alpha) <= best:
            return ranked([one for one in finished if len(one.tokens) <= step])[0]
    return overall


_TAKER = "the engine ctranslate2"
_ROWS = 128  # sentences of a batch
# With a length penalty of 0 CTranslate2 stops once its first hypothesis has finished, and as many
# as the beam is wide; with any other once so many times as many have. attlas goes on until a longer
# one could not score higher: at 0, one sentence in eighty came out otherwise with α = 1, and one
# list of five best in five with α = 0.
_PATIENCE = 2
# Of 200 sentences and an unsure model one came out otherwise with 1, 14 with 1.2, 40 with 1.5; of
# 300 and a trained one none with 1, one with 1.5.
_STEEPEST = 1.0
_IMPOSSIBLE = -1e30  # log P: CTranslate2 fills a beam up with what it may not write
_BY_PROBABILITY = 1e-30  # |Y| to this power is 1: another penalty than 0, and the same ranks


class FastTranslator(Translator):
    """A `Translator` that searches by an export of its run to CTranslate2.

    `folder` is what `export(run, "ctranslate2", folder)` wrote of this very checkpoint. CTranslate2
    finds hypotheses, the best by log P; they are ranked as `Penalties` ranks them, and those
    that come after attlas would have stopped (`found_in_time`) are left out. The same numbers up to
    rounding, and the same search but for this: a hypothesis of the greatest length counts as cut
    off even where END would have come next. attlas itself searches where CTranslate2 writes padding
    or begin, to which a trained model gives almost nothing, and for a source that is longer than
    the table of positions of the export; also with a prefix, a `min_length`, a `length_penalty`
    above 1, or a forbidden <unk>, where the two would differ. An export in 8 bits is computed with
    in 32 where this CPU would cut products of 8 bits off (`saturates`): a third slower, and right.
    Traces, alignments and the words that stand for <unk> come from attlas's own model, as always.

    Raises:
        AttlasError: Without CTranslate2, for a folder that is no such export, and for a search that
            CTranslate2 does not know.
    """

    def __init__(
        self,
        run: Run | Path | str,
        folder: Path | str,
        config: DecodingConfig | None = None,
        *,
        checkpoint: str = BEST,
    ) -> None:
        try:
            import ctranslate2
        except ImportError:
            raise missing_extra(_TAKER, "ctranslate2") from None
        loaded = LoadedTranslator.of(run, checkpoint)
        config = config or loaded.decoding
        _check(config)
        if not isinstance(loaded.model, Transformer):
            kind = loaded.run.table("model").get("kind")
            raise UnsupportedError(
                f'a model of kind "transformer" for {_TAKER}', repr(kind), "use engine attlas"
            )
        exported = loaded.transformer(_TAKER)[1]
        self._longest, self._learned = longest(exported), exported.positions == "learned"
        quantization = _read_origin(Path(folder), loaded).quantization
        engine = "ctranslate2" if quantization == "float32" else f"ctranslate2-{quantization}"
        origin = {"run": str(loaded.run.path), "checkpoint": checkpoint, "engine": engine}
        self._set_up(loaded.model, loaded.vocabularies, config, origin)
        is_exact = quantization == "float32" or not saturates()
        # Batches come side by side, a thread each, as they do without it.
        try:
            self._engine = ctranslate2.Translator(
                str(folder),
                compute_type="default" if is_exact else "float32",
                inter_threads=torch.get_num_threads(),
                intra_threads=1,
            )
        except RuntimeError as error:
            raise CheckpointError(
                f"a whole export to CTranslate2 at {folder}", str(error), "export the run again"
            ) from None
        self._source = names(self.vocabularies.source)
        self._target = names(self.vocabularies.target)
        self._ids = {name: id_ for id_, name in enumerate(self._target)}

    def _set_config(self, config: DecodingConfig) -> None:
        _check(config)
        super()._set_config(config)

    @contextmanager
    def forked(self) -> Iterator[Translator]:
        """This translator: its engine has threads of its own, which no fork would copy."""
        yield self

    def search(
        self, sources: Sequence[Sequence[int]], prefixes: Sequence[Sequence[int]]
    ) -> list[list[Hypothesis]]:
        if any(prefixes) or not self._knows:
            return super().search(sources, prefixes)
        engine: list[int] = []
        attlas: list[int] = []
        for index, ids in enumerate(sources):
            (engine if self._has_room(len(ids) + 1) else attlas).append(index)
        candidates = self._found_by_engine(sources, engine)
        found = dict(zip(engine, self._best(candidates), strict=True))
        # Of CTranslate2's hypotheses some may read alike, or hold what attlas never writes.
        attlas += [index for index in engine if len(found[index]) < self.config.n_best]
        if attlas:
            lists = super().search([sources[number] for number in attlas], [[]] * len(attlas))
            found.update(zip(attlas, lists, strict=True))
        return [found[index] for index in range(len(sources))]

    def _found_by_engine(
        self, sources: Sequence[Sequence[int]], indices: Sequence[int]
    ) -> list[tuple[list[str], list[Hypothesis]]]:
        """For each of these sources its tokens, and all hypotheses that CTranslate2 finds for it.

        CTranslate2 has one greatest length a batch, and each source one of its own. Neighbours by
        length come together, with the greatest length of the longest. Where a hypothesis reaches
        its own, which is rare, the source comes again with others of the same length.
        """
        rows = max(1, min(_ROWS, -(-len(indices) // torch.get_num_threads())))
        by_length = sorted(indices, key=lambda index: -len(sources[index]))  # the longest first
        batches = [by_length[start : start + rows] for start in range(0, len(by_length), rows)]
        found: dict[int, tuple[list[str], list[Hypothesis]]] = {}
        for _ in range(2):
            running = [  # all before any is waited for: threads take what is there
                (
                    batch,
                    *self._begun(len(sources[batch[0]]) + 1, [sources[n] for n in batch], rows),
                )
                for batch in batches
            ]
            again: dict[int, list[int]] = {}
            for batch, tokens, futures in running:
                max_length = self._max_length(len(sources[batch[0]]) + 1)
                for index, source, hypotheses in zip(
                    batch, tokens, self._awaited(futures), strict=True
                ):
                    found[index] = source, hypotheses
                    size = len(sources[index])
                    own = self._max_length(size + 1)
                    longest_found = max(
                        (len(one.tokens) + one.finished for one in hypotheses), default=0
                    )
                    if own < max_length and longest_found >= own:
                        again.setdefault(size, []).append(index)
                self._ended.add(len(batch))
            batches = list(again.values())
        return [found[index] for index in indices]

    @property
    def _knows(self) -> bool:
        """Return True if CTranslate2 would come to the same: it makes probabilities anew where the
        end is forbidden, stops too soon where long translations are sought for their length, and
        knows no bounds of one call.
        """
        if self._bounds != UNBOUNDED or self.config.unknown == "forbid":
            return False
        return not self.config.min_length and self.config.length_penalty <= _STEEPEST

    def _has_room(self, size: int) -> bool:
        """Return True if there are positions for so many source tokens, and for all that attlas
        would write; learned ones bound what attlas writes as well.
        """
        if self._longest is None:
            return True
        return size <= self._longest and (
            self._learned or self.config.max_length(size) < self._longest
        )

    def _max_length(self, size: int) -> int:
        """How many tokens are written at most for a source of so many, END included."""
        max_length = self.config.max_length(size)
        if self._longest is None:
            return max_length
        return min(max_length, self._longest - 1)  # the begin token has a position, too

    def _begun(
        self, size: int, sources: Sequence[Sequence[int]], rows: int
    ) -> tuple[list[list[str]], list[Any]]:
        """The tokens of these sources, and what becomes of each by and by.

        Args:
            size: Tokens of a source with END: all may write as much as such a one.
            rows: At most so many come together.
        """
        width = 1 if self.config.method == "greedy" else self.config.num_beams
        patient = width > 1 and (self.config.length_penalty > 0.0 or self.config.n_best > 1)
        enough = width * _PATIENCE if patient else width
        source_tokens = [[self._source[id_] for id_ in ids] for ids in sources]
        futures = self._engine.translate_batch(
            source_tokens,
            max_batch_size=rows,
            beam_size=width,
            num_hypotheses=enough,
            patience=enough / width,
            length_penalty=_BY_PROBABILITY if patient else 0,
            max_input_length=0,
            max_decoding_length=self._max_length(size),
            min_decoding_length=0,  # 1 by default
            return_scores=True,
            return_end_token=True,
            asynchronous=True,
        )
        return source_tokens, futures

    def _awaited(self, running: Sequence[Any]) -> Iterator[list[Hypothesis]]:
        """The hypotheses of each source of what was begun, once they are there."""
        for future in running:
            result = future.result()
            yield [
                self._hypothesis([self._ids[name] for name in tokens], log_p)
                for tokens, log_p in zip(result.hypotheses, result.scores, strict=True)
                if log_p > _IMPOSSIBLE or len(result.hypotheses) == 1
            ]

    def _best(
        self, candidates: Sequence[tuple[list[str], list[Hypothesis]]]
    ) -> list[list[Hypothesis]]:
        """The n-best list of each source, of what CTranslate2 found for it.

        None where something in that is never to be written. CTranslate2 does not get this setting:
        it would raise the other probabilities.
        """
        found = [
            (source, [] if any(map(_is_unwritable, hypotheses)) else hypotheses)
            for source, hypotheses in candidates
        ]
        best = [self._ranked(hypotheses) for _, hypotheses in found]
        # CTranslate2 goes on after attlas would have stopped. The whole of a hypothesis is less
        # probable than its beginnings: what is found in time by that measure is so by any.
        unsure = [
            index
            for index, (_, hypotheses) in enumerate(found)
            if hypotheses
            and self._in_time(hypotheses, [*map(_at_least, hypotheses)]) != best[index]
        ]
        # In most cases attlas's search would not have stopped before the best ones, because of
        # their beginnings.
        for every in (False, True):
            pairs = [
                (source, hypothesis)
                for source, hypotheses, listed in ((*found[n], best[n]) for n in unsure)
                for hypothesis in hypotheses
                if every or hypothesis in listed
            ]
            known = iter(self._sums(pairs))
            still_unsure = []
            for index in unsure:
                hypotheses = found[index][1]
                sums = [
                    next(known) if every or one in best[index] else _at_least(one)
                    for one in hypotheses
                ]
                in_time = self._in_time(hypotheses, sums)
                if every:
                    best[index] = in_time
                elif in_time != best[index]:
                    still_unsure.append(index)
            unsure = still_unsure
        return best

    def _ranked(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        return best_texts(hypotheses, self.config.n_best, self._surface)

    def _in_time(
        self, hypotheses: Sequence[Hypothesis], sums: Sequence[Sequence[float]]
    ) -> list[Hypothesis]:
        """The n-best list of what attlas would have found; see `found_in_time`."""
        n_best, alpha = self.config.n_best, self.config.length_penalty
        if n_best == 1:
            return [best_in_time(hypotheses, sums, alpha)]
        texts = [self._surface.text(hypothesis.tokens) for hypothesis in hypotheses]
        return self._ranked(found_in_time(hypotheses, sums, texts, n_best, alpha))

    def _sums(self, pairs: Sequence[tuple[list[str], Hypothesis]]) -> list[list[float]]:
        """For each hypothesis of a source, log P of its first 1, 2, … tokens."""
        sources = [source for source, _ in pairs]
        targets = [[self._target[id_] for id_ in hypothesis.tokens] for _, hypothesis in pairs]
        scores = self._engine.score_batch(sources, targets, max_input_length=0) if pairs else []
        return [list(accumulate(score.log_probs)) for score in scores]

    def _hypothesis(self, ids: list[int], log_probability: float) -> Hypothesis:
        finished = ids[-1:] == [END]
        score = log_probability / length_penalty(len(ids), self.config.length_penalty)
        return Hypothesis(tuple(ids[:-1] if finished else ids), score, log_probability, finished)


def _at_least(hypothesis: Hypothesis) -> list[float]:
    """Less than log P of its first 1, 2, … tokens: that of all of them."""
    return [hypothesis.log_probability] * (len(hypothesis.tokens) + 1)


def _is_unwritable(hypothesis: Hypothesis) -> bool:
    return not {PAD, BEGIN}.isdisjoint(hypothesis.tokens)


class _Origin(Config):
    attlas: str
    format: str
    quantization: str
    checkpoint: str
    weights: str
    provenance: dict[str, Any]
    files: dict[str, str] | None = None  # unknown of older exports


def _check(config: DecodingConfig) -> None:
    """Check that CTranslate2 knows this search."""
    if config.method == "sample":
        raise UnsupportedError(
            f'method = "beam" or "greedy" for {_TAKER}', '"sample"', "use engine attlas"
        )
    if config.autocast != "none":
        raise UnsupportedError(
            f'autocast = "none" for {_TAKER}, whose numbers are those of its export',
            repr(config.autocast),
            'set decoding.autocast = "none", or use engine attlas',
        )
    for name in ("coverage_penalty", "no_repeat_ngram", "exhaustive", "cuda_graphs"):
        value = getattr(config, name)
        if value:
            raise UnsupportedError(
                f"no {name} with {_TAKER}",
                f"{name} = {str(value).lower()}",
                f"set decoding.{name} = {str(type(value)()).lower()}, or use engine attlas",
            )


def _read_origin(folder: Path, loaded: LoadedCheckpoint) -> _Origin:
    """What the folder says of itself, which is an export of this checkpoint."""
    expected = f"an export of checkpoint {loaded.checkpoint} of {loaded.run.path} at {folder}"
    quantized = ["--quantization", "int8"] if folder.name.endswith("int8") else []
    command = ["attlas", "export", str(loaded.run.path), "--to", "ctranslate2", *quantized]
    export = f"run: {join([*command, '--checkpoint', loaded.checkpoint, '--out', str(folder)])}"
    remove_advice, other = (
        f"take it away and {export}, or name another folder",
        "name another folder",
    )
    try:
        origin = parse_json(stored_bytes(folder / ORIGIN))
        if not isinstance(origin, dict):
            raise ValueError("it holds no facts")
    except FileNotFoundError:
        raise CheckpointError(expected, "none", other if existing(folder) else export) from None
    except (OSError, ValueError) as error:
        raise CheckpointError(expected, f"a damaged {ORIGIN} ({error})", remove_advice) from None
    exported = _Origin.read(origin, str(folder / ORIGIN))
    if exported.format != "ctranslate2":
        raise CheckpointError(expected, f"an export to {exported.format}", other)
    if exported.weights != loaded.weights:
        raise CheckpointError(
            expected, f"one of other weights, of checkpoint {exported.checkpoint}", remove_advice
        )
    if exported.files is None:
        raise CheckpointError(expected, "one of an older attlas, without a checksum", remove_advice)
    digests = file_digests(folder)
    if changed_files := [
        name for name, digest in exported.files.items() if digests.get(name) != digest
    ]:
        raise CheckpointError(
            expected, f"one with other bytes in {join_names(changed_files, ', ')}", remove_advice
        )
    return exported

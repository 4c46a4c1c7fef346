"""`decode` and `decode_all`: run a search over batches of sources."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attlas.data import padded
from attlas.data.vocabulary import BEGIN, END, PAD, UNKNOWN
from attlas.decoding.beam import beam_search
from attlas.decoding.config import DecodingConfig
from attlas.decoding.sampling import Distribution, sample
from attlas.decoding.scoring import Constraints, Hypothesis, Penalties
from attlas.decoding.search import Search, greedy_search, run_searches
from attlas.decoding.static_search import SourceBatch, StaticSearch, check_static
from attlas.decoding.surface import Surface
from attlas.errors import AttlasError, ConfigError
from attlas.models.encoder_decoder import S, SequenceToSequence, check_evaluating
from attlas.ops.linear import autocast, check_autocast, is_traced_or_transformed
from attlas.recording.hooks import listeners


class SearchInput(NamedTuple):
    """A batch of sources, padded on the right.

    Args:
        prefix: The target ids with which each row must begin; [] = free, None = all rows are free.
    """

    source: Int[Tensor, "batch keys"]
    token_mask: Bool[Tensor, "batch keys"]
    prefix: Sequence[Sequence[int]] | None = None

    @classmethod
    def of(
        cls,
        sources: Sequence[Sequence[int]],
        device: torch.device,
        prefix: Sequence[Sequence[int]] | None = None,
    ) -> "SearchInput":
        """The batch of these sources, ids without END, which is put behind them."""
        source, token_mask = padded([[*ids, END] for ids in sources])
        return cls(source.to(device), token_mask.to(device), prefix)


class Bounds(NamedTuple):
    """Bounds of a search, besides its settings.

    Args:
        target: The maximum number of tokens that are written.
        before_step: Called before every step; if it raises, all searches of the call end.
    """

    target: int | None = None
    before_step: Callable[[], None] | None = None


UNBOUNDED = Bounds()


def decode(
    model: SequenceToSequence[S],
    source: Int[Tensor, "batch keys"],
    token_mask: Bool[Tensor, "batch keys"],
    config: DecodingConfig,
    prefix: Sequence[Sequence[int]] | None = None,
    surface: Surface | None = None,
) -> list[list[Hypothesis]]:
    """The n-best list of each source row, best first; never empty.

    `prefix` holds the target ids with which each row has to begin ([] = free).

    `config.max_source_length` is not used here: sources are translated whole.

    Args:
        surface: Makes the texts of a list different; None = only their tokens differ, except for
            draws. The result of a row does not depend on the other rows, except for rounding.

    Raises:
        AttlasError: If the model is in training mode, if a row holds no token, if the prefixes do
            not fit, or where the device does not have the numbers of `config.autocast`.
    """
    return decode_all(model, [SearchInput(source, token_mask, prefix)], config, surface=surface)[0]


@torch.inference_mode()
def decode_all(
    model: SequenceToSequence[S],
    batches: Sequence[SearchInput],
    config: DecodingConfig,
    bounds: Bounds = UNBOUNDED,
    surface: Surface | None = None,
    on_ended: Callable[[int], None] | None = None,
) -> list[list[list[Hypothesis]]]:
    """The results of `decode` for each batch; faster if short searches come first.

    A batch is read when the one before has few sentences left, fewer than half and than 32
    hypotheses, which go on with it as `Joinable` states do: so many more than a batch has are in
    memory at a time. Where the model is observed, and where tokens are drawn, each batch
    stays alone. All are on one device.

    Args:
        on_ended: Called now and then with how many more sentences have ended.
    """
    check_evaluating(model)
    if not batches:
        return []
    device = batches[0].source.device
    check_autocast(config.autocast, device, "decoding.autocast")
    results = [
        (batch, _constraints(model, batch, config, bounds.target))
        for batch in batches
        if len(batch.source)
    ]
    lower = config.autocast != "none"  # else whatever holds outside stays as it is
    with autocast(config.autocast, device) if lower else nullcontext():
        if config.method == "sample":
            drawn: list[list[Hypothesis]] = []
            for batch in results:
                drawn += _sampled(model, *batch, config, bounds.before_step, surface)
                if on_ended is not None:
                    on_ended(len(batch[0].source))
            lists = iter(drawn)
        elif results and config.cuda_graphs and _may_replay():
            sources = [
                SourceBatch.of(batch.source, batch.token_mask, rules) for batch, rules in results
            ]
            search = StaticSearch(check_static(model, device), sources, config, surface)
            lists = iter(search.run(bounds.before_step, on_ended))
        else:
            one_at_a_time = listeners() or is_traced_or_transformed()
            hypotheses = run_searches(
                _searches(model, results, config, surface),
                together=not one_at_a_time,
                before_step=bounds.before_step,
                on_ended=on_ended,
            )
            lists = iter([hypotheses[number] for number in range(len(hypotheses))])
    return [list(islice(lists, len(batch.source))) for batch in batches]


def _may_replay() -> bool:
    """Return True unless attention is observed; it is told that an ordinary search takes place."""
    if not listeners() and not is_traced_or_transformed():
        return True
    warnings.warn(
        "the attention of this search is observed, so it runs without decoding.cuda_graphs",
        stacklevel=3,
    )
    return False


def _searches(
    model: SequenceToSequence[S],
    batches: Sequence[tuple[SearchInput, Constraints]],
    config: DecodingConfig,
    surface: Surface | None,
) -> Iterator[Search[S]]:
    """The search of each batch, begun when it is asked for; their sentences are numbered on."""
    first = 0
    for batch, constraints in batches:
        # Nothing of it is kept here, while the next one is read.
        yield _search(model, batch, constraints, config, surface, first)
        first += len(batch.source)


def _search(
    model: SequenceToSequence[S],
    batch: SearchInput,
    constraints: Constraints,
    config: DecodingConfig,
    surface: Surface | None,
    first: int,
) -> Search[S]:
    state, penalties = _start(model, batch, config)
    if config.method == "greedy":
        return greedy_search(model, state, batch.token_mask, constraints, penalties, first)
    return beam_search(
        model,
        state,
        batch.token_mask,
        constraints,
        penalties,
        first,
        num_beams=config.num_beams,
        n_best=config.n_best,
        exhaustive=config.exhaustive,
        surface=surface,
    )


def _sampled(
    model: SequenceToSequence[S],
    batch: SearchInput,
    constraints: Constraints,
    config: DecodingConfig,
    before_step: Callable[[], None] | None,
    surface: Surface | None,
) -> list[list[Hypothesis]]:
    state, penalties = _start(model, batch, config)
    distribution = Distribution(config.temperature, config.top_k, config.top_p)
    return sample(
        model, batch.source, state, batch.token_mask, constraints, penalties, distribution,
        seed=config.seed, draws=config.n_best, before_step=before_step, surface=surface,
    )  # fmt: skip


def _start(
    model: SequenceToSequence[S], batch: SearchInput, config: DecodingConfig
) -> tuple[S, Penalties]:
    """The state before the first token, and what hypotheses are ranked by."""
    state = model.encode_for_search(batch.source, batch.token_mask)
    if config.coverage_penalty:
        state = state.with_coverage()
    return state, Penalties(config.length_penalty, config.coverage_penalty)


def _constraints(
    model: SequenceToSequence[S], batch: SearchInput, config: DecodingConfig, max_length: int | None
) -> Constraints:
    sizes = batch.token_mask.sum(dim=1).tolist()
    if 0 in sizes:
        raise AttlasError(
            "at least one token in each row of the source",
            f"none in row {sizes.index(0)}",
            "leave empty sentences out",
        )
    check_room(config, model.max_positions)
    longest = [_limit_length(config.max_length(size), model.max_positions) for size in sizes]
    max_lengths = longest if max_length is None else [min(length, max_length) for length in longest]
    prefix = batch.prefix or [[]] * len(sizes)
    if max_lengths != longest:
        _check_bounded(prefix, max_lengths)
    device = batch.source.device
    return Constraints(
        prefix=_padded(prefix, longest, model.max_positions).to(device),
        max_length=torch.tensor(max_lengths, device=device),
        min_length=config.min_length,
        no_repeat_ngram=config.no_repeat_ngram,
        forbidden=(PAD, BEGIN, UNKNOWN) if config.unknown == "forbid" else (PAD, BEGIN),
    )


def _check_bounded(prefixes: Sequence[Sequence[int]], longest: Sequence[int]) -> None:
    """Check that the prefixes fit the bound of this search, which no setting raises."""
    for prefix, max_length in zip(prefixes, longest, strict=False):  # their number is checked next
        if len(prefix) > max_length:
            raise AttlasError(
                f"a prefix of at most {max_length:,} tokens",
                f"{len(prefix):,} tokens",
                "shorten it",
            )


def check_room(config: DecodingConfig, positions: int | None) -> None:
    """Check that the shortest translation that is wanted has positions, behind that of the begin
    token.

    Raises:
        AttlasError: If it has not.
    """
    if positions is not None and config.min_length > positions - 1:
        raise ConfigError(
            f"a min_length of at most {positions - 1}, for which the model has positions",
            str(config.min_length),
            "lower decoding.min_length",
        )


def _limit_length(tokens: int, positions: int | None) -> int:
    """So many tokens, or as many as the model has positions for behind the begin token."""
    return tokens if positions is None else min(tokens, positions - 1)


def _padded(
    prefixes: Sequence[Sequence[int]], longest: Sequence[int], positions: int | None
) -> Int[Tensor, "batch longest"]:
    """One row per prefix, padded with PAD."""
    if len(prefixes) != len(longest):
        raise AttlasError(
            f"one prefix for each of {len(longest)} rows",
            f"{len(prefixes)} prefixes",
            "pass [] for a row without one",
        )
    for row, (prefix, max_length) in enumerate(zip(prefixes, longest, strict=True)):
        if special := {PAD, BEGIN, END}.intersection(prefix):
            raise AttlasError(
                f"a prefix of tokens for row {row}",
                f"one with the special id {min(special)}",
                "leave padding, begin and end out of it",
            )
        if prefix and min(prefix) < 0:
            raise AttlasError(
                f"a prefix of tokens for row {row}",
                f"one with the id {min(prefix)}",
                "count ids from 0",
            )
        if len(prefix) > max_length:
            raise AttlasError(
                f"a prefix of at most {max_length} tokens for row {row}",
                f"{len(prefix)} tokens",
                "shorten it: the model has no more positions"
                if positions is not None and max_length == positions - 1
                else "shorten it, or raise max_len_b",
            )
    width = max(map(len, prefixes))
    rows = [[*prefix, *[PAD] * (width - len(prefix))] for prefix in prefixes]
    return torch.tensor(rows, dtype=torch.long).reshape(len(rows), width)

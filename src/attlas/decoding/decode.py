"""The one door to every search."""

from collections.abc import Sequence
from contextlib import nullcontext

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attlas.data.vocabulary import BEGIN, END, PAD
from attlas.decoding.beam import beam_search
from attlas.decoding.config import DecodingConfig
from attlas.decoding.constraints import Constraints
from attlas.decoding.greedy import greedy_search
from attlas.decoding.hypothesis import Hypothesis
from attlas.decoding.penalties import Penalties
from attlas.decoding.sample import Distribution, sample
from attlas.errors import AttlasError
from attlas.layers.autocast import autocast, check_autocast
from attlas.models.evaluating import check_evaluating
from attlas.models.sequence_to_sequence import S, SequenceToSequence


@torch.inference_mode()
def decode(
    model: SequenceToSequence[S],
    source: Int[Tensor, "batch slots"],
    real: Bool[Tensor, "batch slots"],
    config: DecodingConfig,
    prefix: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """The n-best list of each source row, best first; never empty.

    `prefix` holds the target ids with which each row has to begin ([] = free). What is found for
    a row does not depend on the rows beside it, but for the rounding of floats.
    `config.longest_source` is not read here: what came is translated whole.

    Errors: `AttlasError` where the model is in training mode, where a row holds no token, where
    the prefixes do not fit, or where the device does not have the numbers of `config.autocast`.
    """
    check_evaluating(model)
    check_autocast(config.autocast, source.device, "decoding.autocast")
    if not len(source):
        return []
    sizes = real.sum(dim=1).tolist()
    if 0 in sizes:
        raise AttlasError(
            "at least one token in each row of the source",
            f"none in row {sizes.index(0)}",
            "leave empty sentences out",
        )
    check_room(config, model.longest)
    longest = [_most(config.max_length(size), model.longest) for size in sizes]
    constraints = Constraints(
        prefix=_padded(prefix or [[]] * len(sizes), longest, model.longest).to(source.device),
        max_length=torch.tensor(longest, device=source.device),
        min_length=config.min_length,
        no_repeat_ngram=config.no_repeat_ngram,
    )
    penalties = Penalties(config.length_penalty, config.coverage_penalty)
    lower = config.autocast != "none"  # else whatever holds outside stays as it is
    with autocast(config.autocast, source.device) if lower else nullcontext():
        state = model.begin(source, real)
        if config.coverage_penalty:
            state = state.covered()
        match config.method:
            case "greedy":
                found = greedy_search(model, state, real, constraints, penalties)
            case "beam":
                found = beam_search(
                    model, state, real, constraints, penalties,
                    beam=config.beam, n_best=config.n_best, exhaustive=config.exhaustive,
                )  # fmt: skip
            case "sample":
                distribution = Distribution(config.temperature, config.top_k, config.top_p)
                found = sample(
                    model, source, state, real, constraints, penalties, distribution,
                    seed=config.seed, draws=config.n_best,
                )  # fmt: skip
    return found


def check_room(config: DecodingConfig, positions: int | None) -> None:
    """That the shortest translation that is wanted has positions, behind that of the begin token.

    Errors: `AttlasError` where it has not.
    """
    if positions is not None and config.min_length > positions - 1:
        raise AttlasError(
            f"a min_length of at most {positions - 1}, for which the model has positions",
            str(config.min_length),
            "lower decoding.min_length",
        )


def _most(tokens: int, positions: int | None) -> int:
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
    for row, (prefix, most) in enumerate(zip(prefixes, longest, strict=True)):
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
        if len(prefix) > most:
            raise AttlasError(
                f"a prefix of at most {most} tokens for row {row}",
                f"{len(prefix)} tokens",
                "shorten it: the model has no more positions"
                if positions is not None and most == positions - 1
                else "shorten it, or raise max_length_constant",
            )
    width = max(map(len, prefixes))
    rows = [[*prefix, *[PAD] * (width - len(prefix))] for prefix in prefixes]
    return torch.tensor(rows, dtype=torch.long).reshape(len(rows), width)

"""A random text that says everything several times: what shows an induction head."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from attlas.errors import AttlasError


def repeated(
    tokens: Sequence[int] | range | Int[Tensor, " known"],
    *,
    seed: int,
    length: int = 25,
    times: int = 4,
    begin: Sequence[int] = (),
) -> Int[Tensor, " places"]:
    """`begin`, and then `times` times the same `length` tokens, drawn from `tokens` without a copy.

    No token occurs twice within a repeat, so that only an earlier repeat can say what comes next
    (Olsson et al., 2022, whose score is taken of 25 tokens, 4 times). Frequent tokens and special
    ones are best left out of `tokens`. A function of the seed.
    Errors: `AttlasError` for fewer different tokens than a repeat has, and for a single repeat.
    """
    drawn = torch.unique(torch.as_tensor(tokens))
    if not 1 <= length <= len(drawn):
        raise AttlasError(
            f"a length from 1 to the number of different tokens, {len(drawn):,}",
            f"{length:,}",
            "give more tokens, or ask for a shorter repeat",
        )
    if times < 2:
        raise AttlasError("at least two times the same", str(times), "pass e.g. times=4")
    order = torch.randperm(len(drawn), generator=torch.Generator().manual_seed(seed))
    once = drawn[order[:length]].to(torch.long)
    return torch.cat((torch.tensor(list(begin), dtype=torch.long), once.repeat(times)))

"""Attention between words, of a map between their parts."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attlas.errors import AttlasError
from attlas.recording import Reading

_AT_ONCE = 1 << 22  # weights that are held together


def word_numbers(encoding: Any) -> Int[Tensor, "batch tokens"]:
    """Which word each token is part of, from 0; −1 for special tokens and padding.

    encoding: what a fast Hugging Face tokenizer makes of a batch of word lists, with
    `is_split_into_words=True`; its `word_ids` are asked.
    Errors: `AttlasError` where the tokenizer does not know.
    """
    try:
        rows = [encoding.word_ids(row) for row in range(len(encoding["input_ids"]))]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise AttlasError(
            "a batch from a fast tokenizer, which knows the words of its tokens",
            f"{type(encoding).__name__} ({error})",
            "tokenise a list of word lists with AutoTokenizer, or number the words yourself",
        ) from None
    longest = max(map(len, rows), default=0)
    padded = [[-1 if word is None else word for word in row] for row in rows]
    return torch.tensor([row + [-1] * (longest - len(row)) for row in padded]).long()


def between_words(
    reading: Reading, words: Int[Tensor, " tokens"], count: int, at_once: int = _AT_ONCE
) -> Iterator[tuple[int, Float[Tensor, "heads rows words"]]]:
    """w̄_ab = mean_{i ∈ a} Σ_{j ∈ b} w_ij, of the words a, b: the first a of a few, and their rows.

    What looks at a word looks at each of its parts, so those add up; what a word looks at is the
    mean of its parts (Clark et al., 2019, section 4.1). Rows then sum to 1, less what tokens of no
    word get. words: the number of the word of each token, −1 = of none; a word without a token has
    zeros. The reading has one batch row.
    Errors: `AttlasError` for a map that is not square, and for numbers that do not fit it.
    """
    batch, heads, queries, slots = reading.shape
    if batch != 1 or queries != slots:
        raise AttlasError(
            "one whole map of a text that looks at itself",
            f"{batch} × {queries:,} queries × {slots:,} slots",
            "choose the layers of self-attention",
        )
    if reading.position != 0:
        raise AttlasError(
            "a map each query of which stands at its own slot",
            "one that does not, or says nothing of it, as of a text in windows or chunks",
            "choose other layers; or, where you know better, dataclasses.replace(reading, first=0)",
        )
    least, greatest = (int(words.min()), int(words.max())) if words.numel() else (-1, -1)
    if tuple(words.shape) != (slots,) or greatest >= count or least < -1:
        raise AttlasError(
            f"for each of {slots:,} tokens the number of its word, from -1 to below {count:,}",
            f"{tuple(words.shape)}, from {least:,} to {greatest:,}",
            "number the words of each sentence from 0, with -1 for tokens of none",
        )
    step = max(1, at_once // max(1, heads * max(slots, count)))
    for first in range(0, count, step):
        last = min(first + step, count)
        yield first, _rows(reading, words, (first, last), count, step)


def _rows(
    reading: Reading, words: Int[Tensor, " tokens"], some: tuple[int, int], count: int, step: int
) -> Float[Tensor, "heads rows words"]:
    """The rows of the words some[0] … some[1] − 1."""
    mine = (words >= some[0]) & (words < some[1])
    places = mine.nonzero().flatten()
    heads = reading.shape[1]
    like = reading.rows(0, 0)
    words, mine = words.to(like.device), mine.to(like.device)
    # In float64: the weights of many parts are summed, and the greatest sum is asked for.
    sums = torch.zeros((heads, some[1] - some[0], count), dtype=torch.float64, device=like.device)
    if not len(places):
        return sums
    low, high = int(places[0]), int(places[-1]) + 1
    for start in range(low, high, step):
        stop = min(start + step, high)
        weights = reading.rows(start, stop)[0].to(sums.dtype)
        to_words = weights.new_zeros((heads, stop - start, count + 1))
        to_words.index_add_(-1, words + 1, weights)
        here = mine[start:stop]
        sums.index_add_(1, words[start:stop][here] - some[0], to_words[:, here, 1:])
    parts = torch.bincount(words[mine] - some[0], minlength=some[1] - some[0])
    return sums / parts.clamp(min=1).unsqueeze(-1)

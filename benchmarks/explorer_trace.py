"""Traces such as a BERT leaves, of any length: queries and keys whose maps look like real ones.

    score_ij = (q_i · k_j) / √64,   q_i = Σ_p f_p · q_p(i),   k_j = Σ_p k_p(j)

over four parts p: places (a head looks at the token before, after or at its own, sharply or
broadly), words (at the same word), the first and the separators (which attract what finds nothing
else), and noise. How strong each part is, is drawn for each head.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from attlas.patterns import everywhere
from attlas.recording import FactoredAttentionMap, Trace

WIDTH = 64  # of a head
_PLACES, _WORDS, _NOISE = 32, 22, 8  # of these 64; two are left, for the first and the separators
_SYLLABLES = [
    "ba",
    "co",
    "di",
    "fu",
    "ge",
    "ha",
    "ki",
    "lo",
    "ma",
    "ne",
    "pi",
    "ro",
    "su",
    "ta",
    "ve",
    "wo",
]
_SENTENCE = 24  # tokens, on average, between separators


def words(length: int, seed: int = 0) -> list[str]:
    """So many tokens, as a tokenizer of BERT writes them: some are pieces of words."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(most: int) -> int:
        return int(torch.randint(most, (1,), generator=generator))

    lexicon = ["".join(_SYLLABLES[drawn(16)] for _ in range(1 + drawn(3))) for _ in range(400)]
    tokens = ["[CLS]"]
    while len(tokens) < length - 1:
        if drawn(_SENTENCE) == 0 and tokens[-1] not in ("[CLS]", "[SEP]"):
            tokens.append("[SEP]")
            continue
        # Frequent words come first, as in a language.
        word = lexicon[min(int(400 ** (drawn(10_000) / 10_000)), 399)]
        tokens.append(f"##{word}" if drawn(6) == 0 else word)
    return [*tokens[: length - 1], "[SEP]"]


def trace(layers: int, heads: int, length: int, seed: int = 0) -> Trace:
    """The queries and keys of every layer for one text of so many tokens."""
    tokens = words(length, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    made = Trace()
    for number in range(layers):
        pairs = [_head(tokens, generator) for _ in range(heads)]
        query = torch.stack([one for one, _ in pairs]).unsqueeze(0)
        keys = torch.stack([one for _, one in pairs]).unsqueeze(0)
        name = f"bert.encoder.layer.{number}.attention.self"
        made.record(name, FactoredAttentionMap(query, keys, WIDTH**-0.5, everywhere, 0))
        made.label_layer(name, [tokens], [tokens])
    return made


def _head(
    tokens: list[str], generator: torch.Generator
) -> tuple[Float[Tensor, "length width"], Float[Tensor, "length width"]]:
    """The queries and keys of one head."""
    length = len(tokens)
    draws = torch.rand(8, generator=generator).tolist()
    # In logits at its peak: sharp heads have 14, diffuse ones next to nothing.
    sharp = [14 * draw**2 for draw in draws[:3]]
    offset = (-1, 1, 0, -1)[int(4 * draws[3])]
    reach = 2 ** (1 + 5 * draws[4])  # tokens, within which places are alike
    # Places: Σ cos ω (i + offset − j) is largest where j = i + offset.
    rates = torch.randn(_PLACES // 2, generator=generator) / reach
    place = torch.arange(length, dtype=torch.float32).unsqueeze(1)
    requested, there = (place + offset) * rates, place * rates
    places = (
        torch.cat([requested.cos(), requested.sin()], 1),
        torch.cat([there.cos(), there.sin()], 1),
    )
    # Words: those that are the same have the same direction.
    known = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    meanings = torch.randn(len(known), _WORDS, generator=generator)
    meanings = meanings / meanings.norm(dim=1, keepdim=True)
    meaning = meanings[torch.tensor([known[token] for token in tokens])]
    # The first token and the separators.
    first, ends = torch.zeros(length, 1), torch.zeros(length, 1)
    first[0] = 1
    ends[torch.tensor([token == "[SEP]" for token in tokens])] = 1
    alike = torch.ones(length, 1)
    noise = torch.randn(2, length, _NOISE, generator=generator)
    root = math.sqrt(WIDTH)
    query = torch.cat(
        [
            places[0] * (sharp[0] * root * 2 / _PLACES),
            meaning * (sharp[1] / 2 * root),
            alike * (sharp[2] / 2 * root),
            alike * (3 * draws[5] * root),
            noise[0] * (draws[6] * root / math.sqrt(_NOISE)),
        ],
        1,
    )
    return query, torch.cat([places[1], meaning, first, ends, noise[1]], 1)

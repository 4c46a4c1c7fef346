"""Sampling."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.data.vocabulary import PAD
from attlas.decoding.scoring import Constraints, Hypothesis, Penalties, sums
from attlas.decoding.search import SingleHypothesisSearch, run_searches
from attlas.decoding.surface import Surface, best_texts
from attlas.models.encoder_decoder import S, SequenceToSequence

# Random numbers that are a function of a seed and of how many came before.


_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_BITS = 53  # of a number of float64


def splitmix64_uniform(seeds: Int[Tensor, " rows"], number: int) -> Float[Tensor, " rows"]:
    """For each seed the random number that comes after so many: in [0, 1), the same everywhere.

    SplitMix64 (Steele, Lea & Flood, 2014): z = seed + (number + 1) · γ, whose bits are mixed by
    z ← (z ⊕ z ≫ 30) · a,  z ← (z ⊕ z ≫ 27) · b,  z ← z ⊕ z ≫ 31; all numbers at once, and none of
    those before. Of the type of `sums`.
    """
    hashed = _mixed(seeds + _as_signed((number + 1) * _STEP))
    uniform = _shifted(hashed, 64 - _BITS).to(sums(seeds.device)) * 2.0**-_BITS
    return uniform.clamp(max=1.0 - 1e-6)  # below 1 also after rounding


def _mixed(z: Int[Tensor, " rows"]) -> Int[Tensor, " rows"]:
    z = (z ^ _shifted(z, 30)) * _as_signed(_FIRST)
    z = (z ^ _shifted(z, 27)) * _as_signed(_SECOND)
    return z ^ _shifted(z, 31)


def _shifted(z: Int[Tensor, " rows"], bits: int) -> Int[Tensor, " rows"]:
    """z ≫ bits of numbers without a sign, which torch has not."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def _as_signed(number: int) -> int:
    """The same 64 bits, the first of which is a sign."""
    low = number % 2**64
    return low - 2**64 if low >= 2**63 else low


_TIMES = 4  # as many draws as are wanted, at most, to find so many texts
_HYPOTHESES = 2048  # that are followed at a time: each has probabilities of all words


@dataclass(frozen=True, slots=True)
class Distribution:
    """softmax(log P / temperature) over the tokens that are kept, renormalised.

    Kept are the top_k most probable (0 = all), and of these, by the same distribution, the fewest
    most probable ones that together hold at least top_p (Holtzman et al., 2020, section 3.1).
    Tokens as probable as the last one kept are kept too, so that the order of ids decides nothing.
    """

    temperature: float
    top_k: int
    top_p: float

    def of(
        self, log_probabilities: Float[Tensor, "rows vocabulary"]
    ) -> Float[Tensor, "rows vocabulary"]:
        """The probabilities to draw from; 0 for what is not kept."""
        # The best at 0: a small temperature must not take every token to −∞.
        best = log_probabilities.amax(dim=-1, keepdim=True)
        scores = log_probabilities - best.masked_fill(best.isneginf(), 0.0)
        bounds = torch.finfo(scores.dtype)
        scores = scores / min(max(self.temperature, bounds.tiny), bounds.max)
        top_k = scores.shape[1]
        if 0 < self.top_k < top_k:
            last = scores.topk(self.top_k, dim=-1).values[:, -1:]
            is_kept = scores >= last
            scores, top_k = scores.masked_fill(~is_kept, float("-inf")), int(is_kept.sum(-1).amax())
        probabilities = torch.softmax(scores, dim=-1)
        if self.top_p < 1.0:
            sorted_probabilities = probabilities.topk(top_k, dim=-1).values  # all that is not 0
            mass_before = sorted_probabilities.cumsum(dim=-1) - sorted_probabilities
            last = sorted_probabilities.masked_fill(mass_before >= self.top_p, 1.0).amin(
                dim=-1, keepdim=True
            )
            probabilities = probabilities.masked_fill(probabilities < last, 0.0)
        # Where nothing may come, softmax is 0 / 0: no probability anywhere.
        return (probabilities / probabilities.sum(dim=-1, keepdim=True)).nan_to_num(0.0)


def sample(
    model: SequenceToSequence[S],
    source: Int[Tensor, "batch keys"],
    state: S,
    token_mask: Bool[Tensor, "batch keys"],
    constraints: Constraints,
    penalties: Penalties,
    distribution: Distribution,
    *,
    seed: int,
    draws: int,
    before_step: Callable[[], None] | None = None,
    surface: Surface | None = None,
) -> list[list[Hypothesis]]:
    """`draws` sentences per source, each token drawn from `distribution`; best score first.

    Draws are independent: one sentence may be drawn twice. With a `surface` all texts of a list are
    different, and the tokens with the highest score stand for a text: what is missing then is drawn
    anew, up to four times as many draws in all, after which a list stays shorter.

    The randomness is a function of (seed, the source's own ids, its forced prefix, the number of
    the draw, the step) and of nothing else: a sentence gets the same draws alone, in any batch, and
    each time it comes; for other draws change the seed. The log-probability of what was drawn is
    the model's own. Of many draws, 2,048 are followed at a time.
    """
    owners = _owners(source, token_mask, constraints)
    samples: list[list[Hypothesis]] = [[] for _ in owners]
    missing = [draws] * len(owners)
    while any(missing):
        sentences, keys = [], []
        for row, count in enumerate(missing):
            num_drawn = len(samples[row])
            sentences += [row] * count
            keys += [_key(seed, *owners[row], [num_drawn + number]) for number in range(count)]
        found = _sample_rows(
            model,
            state,
            token_mask,
            constraints,
            penalties,
            distribution,
            sentences,
            keys,
            before_step,
        )
        for row, hypothesis in zip(sentences, found, strict=True):
            samples[row].append(hypothesis)
        missing = [
            0 if surface is None else _missing(hypotheses, draws, surface) for hypotheses in samples
        ]
    return [best_texts(hypotheses, draws, surface) for hypotheses in samples]


def _missing(samples: Sequence[Hypothesis], draws: int, surface: Surface) -> int:
    """How many draws of one source to make next."""
    texts = len({surface.text(hypothesis.tokens) for hypothesis in samples}) if draws > 1 else 1
    return min(draws - texts, _TIMES * draws - len(samples))


def _sample_rows(
    model: SequenceToSequence[S],
    state: S,
    token_mask: Bool[Tensor, "batch keys"],
    constraints: Constraints,
    penalties: Penalties,
    distribution: Distribution,
    sentences: Sequence[int],
    keys: Sequence[int],
    before_step: Callable[[], None] | None,
) -> list[Hypothesis]:
    """One draw for each of these rows, by these keys."""
    samples: list[Hypothesis] = []
    rows, own_keys = (
        torch.tensor(indices, device=token_mask.device) for indices in (sentences, keys)
    )
    parts = (torch.split(indices, _HYPOTHESES) for indices in (rows, own_keys))
    for sentences_of_part, hypotheses_of_part in zip(*parts, strict=True):
        draw, bound = (
            partial(_draw, distribution, hypotheses_of_part),
            constraints.select(sentences_of_part),
        )
        paths = SingleHypothesisSearch.begun(
            model,
            state.select(sentences_of_part),
            token_mask[sentences_of_part],
            bound,
            penalties,
            draw,
        )
        hypotheses = run_searches(iter([paths]), together=False, before_step=before_step)
        samples += [hypotheses[row][0] for row in range(len(hypotheses))]
    return samples


def _draw(
    distribution: Distribution,
    keys: Int[Tensor, " hypotheses"],
    log_probabilities: Float[Tensor, "rows vocabulary"],
    rows: Int[Tensor, " rows"],
    step: int,
) -> Int[Tensor, " rows"]:
    """The inverse of the cumulative distribution: one number decides a token."""
    cumulative = distribution.of(log_probabilities).to(sums(keys.device)).cumsum(dim=-1)
    drawn_mass = splitmix64_uniform(keys[rows], step).unsqueeze(1) * cumulative[:, -1:]
    sampled = torch.searchsorted(cumulative, drawn_mass, right=True).squeeze(1)
    return sampled.clamp(max=cumulative.shape[1] - 1)  # beyond the end only where nothing may come


def _owners(
    source: Int[Tensor, "batch keys"],
    token_mask: Bool[Tensor, "batch keys"],
    constraints: Constraints,
) -> list[tuple[list[int], list[int]]]:
    """Of each row the ids of its source and of its prefix, on which its draws depend."""
    return [
        (
            [i for i, is_known in zip(ids, seeds_of_row, strict=True) if is_known],
            [i for i in prefix if i != PAD],
        )
        for ids, seeds_of_row, prefix in zip(
            source.tolist(), token_mask.tolist(), constraints.prefix.tolist(), strict=True
        )
    ]


def _key(seed: int, *parts: Sequence[int]) -> int:
    """63 bits that stand for these numbers, the same in every process and on every machine."""
    text = "|".join(" ".join(map(str, part)) for part in ([seed], *parts))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1

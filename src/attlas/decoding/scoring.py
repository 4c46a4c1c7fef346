"""Which token may come next."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas._hardware import is_capturable
from attlas.data.vocabulary import BEGIN, END, PAD
from attlas.errors import AttlasError, ConfigError
from attlas.models.encoder_decoder import join_optional
from attlas.ops.cache import pad_and_concat
from attlas.ops.topk import largest


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the tokens of each hypothesis must obey; one row per hypothesis.

    no_repeat_ngram = n: no n tokens in a row occur twice in a hypothesis; 0 = off. END is never
    blocked, and where END itself is forbidden (min_length) and every other token is blocked, the
    block is lifted for that hypothesis at that step: blocking alone can never kill a hypothesis.

    Args:
        prefix: (rows, longest), padded with PAD: the tokens a hypothesis has to begin with. They
            come before every other rule and may break it (a prefix may repeat itself).
        min_length: END is forbidden before so many tokens.
        max_length: (rows,): no more tokens than these; then END or nothing.
        forbidden: Ids that never come; PAD and BEGIN are among them. What is forbidden gets −∞;
            what is allowed keeps the probability that the model gave it, without renormalising.
    """

    prefix: Int[Tensor, "rows longest"]
    max_length: Int[Tensor, " rows"]
    min_length: int
    no_repeat_ngram: int
    forbidden: tuple[int, ...] = (PAD, BEGIN)

    def select(self, rows: Int[Tensor, " chosen"]) -> "Constraints":
        """These rows, in this order, repeats allowed."""
        return replace(self, prefix=self.prefix[rows], max_length=self.max_length[rows])

    def concat(self, other: "Constraints") -> "Constraints":
        """These rows and then those of others, which have the same rules for all."""
        return replace(
            self,
            prefix=pad_and_concat(self.prefix, other.prefix, PAD),
            max_length=pad_and_concat(self.max_length, other.max_length),
        )

    def apply(
        self,
        log_probabilities: Float[Tensor, "rows vocabulary"],
        tokens: Int[Tensor, "rows length"],
    ) -> Float[Tensor, "rows vocabulary"]:
        """−∞, in place, for what may not follow `tokens`; neighbours may share their constraints.

        Raises:
            AttlasError: If a prefix holds an id that the vocabulary does not have.
        """
        length = tokens.shape[1]
        allowed = log_probabilities
        for token_id in self.forbidden:
            allowed[:, token_id] = float("-inf")
        if length < self.min_length:
            allowed[:, END] = float("-inf")
        if 0 < self.no_repeat_ngram <= length:
            allowed = _without_repeats(allowed, tokens, self.no_repeat_ngram)
        if length < self.prefix.shape[1]:
            rows_per_sentence, size = len(tokens) // len(self.prefix), allowed.shape[1]
            forced_ids = self.prefix[:, length].repeat_interleave(rows_per_sentence)
            _check_ids(forced_ids, size)
            allowed = _following(forced_ids, allowed, log_probabilities)
        return allowed

    def check_ids(self, size: int) -> None:
        """Check that a vocabulary of this size has the tokens of all prefixes.

        Raises:
            AttlasError: If it has not.
        """
        if self.prefix.numel():
            _check_ids(self.prefix, size)

    def full(self, length: int) -> Bool[Tensor, " rows"]:
        """Which rows hold as many tokens as they may."""
        return self.max_length <= length


def _check_ids(forced: Int[Tensor, "*rows"], size: int) -> None:
    most = int(forced.max())
    if most >= size:
        raise AttlasError(
            f"a prefix of ids below {size}, the size of the target vocabulary",
            f"the id {most}",
            "make the prefix with the vocabulary of this model",
        )


def _without_repeats(
    allowed: Float[Tensor, "rows vocabulary"], tokens: Int[Tensor, "rows length"], n: int
) -> Float[Tensor, "rows vocabulary"]:
    """−∞ for every token that would complete an n-gram which `tokens` hold already."""
    grams = tokens.unfold(1, n, 1)  # (rows, length − n + 1, n)
    ngram_start = tokens[:, tokens.shape[1] - n + 1 :].unsqueeze(1)
    repeats = (grams[..., :-1] == ngram_start).all(-1)
    completing = grams[..., -1].masked_fill(~repeats, PAD)  # PAD is forbidden anyway
    blocked = allowed.scatter(1, completing, float("-inf"))
    stuck = torch.isneginf(blocked).all(-1, keepdim=True)
    return torch.where(stuck, allowed, blocked)


def _following(
    forced: Int[Tensor, " rows"],
    allowed: Float[Tensor, "rows vocabulary"],
    free: Float[Tensor, "rows vocabulary"],
) -> Float[Tensor, "rows vocabulary"]:
    """Only the wanted token, with the probability the model gave it, in the rows that want one."""
    masked_scores = torch.full_like(allowed, float("-inf"))
    masked_scores = masked_scores.scatter(
        1, forced.unsqueeze(1), free.gather(1, forced.unsqueeze(1))
    )
    return torch.where((forced == PAD).unsqueeze(1), allowed, masked_scores)


# What a search finds.


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One target sentence and how probable the model holds it.

    Args:
        tokens: Ids without BEGIN and END.
        log_probability: Σ log P(token | before, source) under the model itself (natural logarithm,
            no temperature), END's factor included where it is finished.
        score: What ranks it, see `Penalties`.
        finished: Whether it ended with END; False = it was cut off at the maximum length.
    """

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    finished: bool


def to_hypotheses(
    tokens: Int[Tensor, "sentences places longest"],
    scores: Float[Tensor, "sentences places"],
    log_probabilities: Float[Tensor, "sentences places"],
    lengths: Int[Tensor, "sentences places"] | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses of each sentence, but those of probability 0.

    Args:
        lengths: Of finished ones; None = they are cut off, and all as long as `tokens`.
    """
    finished = lengths is not None
    if lengths is None:
        lengths = torch.full_like(scores, tokens.shape[2], dtype=torch.long)
    return [
        [
            Hypothesis(tuple(ids[:length]), score, log_probability, finished)
            for ids, length, score, log_probability in zip(*of_sentence, strict=True)
            if log_probability > float("-inf")
        ]
        for of_sentence in zip(
            *(part.tolist() for part in (tokens, lengths, scores, log_probabilities)), strict=True
        )
    ]


def ranked(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Best first: finished ones before cut-off ones, then by score; equals keep their order."""
    return sorted(hypotheses, key=lambda hypothesis: (not hypothesis.finished, -hypothesis.score))


# The finished hypotheses of each sentence.


_NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class Finished:
    """The best finished hypotheses of each sentence so far, best first; score −∞ = a free place.

    Args:
        keys: What their texts have in common where they are the same (`Hashes`), and then only the
            best of them has a place; None: all texts are different.
    """

    tokens: Int[Tensor, "sentences places longest"]
    lengths: Int[Tensor, "sentences places"]
    scores: Float[Tensor, "sentences places"]
    log_probabilities: Float[Tensor, "sentences places"]
    keys: Int[Tensor, "sentences places"] | None = None

    @classmethod
    def none(
        cls, sentences: int, capacity: int, like: Float[Tensor, "..."], *, keyed: bool
    ) -> "Finished":
        """No finished hypothesis yet; numbers have the type and the device of `like`."""
        empty_scores = like.new_full((sentences, capacity), _NEVER)
        lengths = torch.zeros(sentences, capacity, dtype=torch.long, device=like.device)
        keys = lengths if keyed else None
        return cls(
            lengths.new_empty(sentences, capacity, 0), lengths, empty_scores, empty_scores, keys
        )

    def select(self, rows: Int[Tensor, " chosen"]) -> "Finished":
        """The hypotheses of these sentences."""
        return Finished(
            self.tokens[rows],
            self.lengths[rows],
            self.scores[rows],
            self.log_probabilities[rows],
            None if self.keys is None else self.keys[rows],
        )

    def concat(self, other: "Finished") -> "Finished":
        """These sentences, and then others with as many places."""
        return Finished(
            pad_and_concat(self.tokens, other.tokens, PAD),
            pad_and_concat(self.lengths, other.lengths),
            pad_and_concat(self.scores, other.scores),
            pad_and_concat(self.log_probabilities, other.log_probabilities),
            join_optional(self.keys, other.keys, pad_and_concat),
        )

    def joined(
        self,
        tokens: Int[Tensor, "sentences width length"],
        scores: Float[Tensor, "sentences width"],
        log_probabilities: Float[Tensor, "sentences width"],
        keys: Int[Tensor, "sentences width"] | None = None,
        lengths: Int[Tensor, "sentences 1"] | None = None,
    ) -> "Finished":
        """The best of these and of newcomers; equals stay before them; −∞ is no newcomer.

        Args:
            lengths: Of the newcomers of each sentence; None = they are as long as `tokens`.
        """
        if not is_capturable() and torch.isneginf(scores).all():
            return self
        length = tokens.shape[2]
        if lengths is None:
            lengths = self.lengths.new_full((len(tokens), 1), length)
        padded = F.pad(self.tokens, (0, length - self.tokens.shape[2]), value=PAD)
        lengths = torch.cat([self.lengths, lengths.expand(scores.shape)], 1)
        scores = torch.cat([self.scores, scores], 1)
        log_probabilities = torch.cat([self.log_probabilities, log_probabilities], 1)
        if self.keys is not None and keys is not None:
            keys = torch.cat([self.keys, keys], 1)
            is_duplicate = _is_worse_duplicate(scores, keys)
            scores = scores.masked_fill(is_duplicate, _NEVER)
            log_probabilities = log_probabilities.masked_fill(is_duplicate, _NEVER)
        best, indices = largest(scores, self.scores.shape[1])
        return Finished(
            torch.cat([padded, tokens], 1).gather(1, indices.unsqueeze(-1).expand(-1, -1, length)),
            lengths.gather(1, indices),
            best,
            log_probabilities.gather(1, indices),
            None if keys is None else keys.gather(1, indices),
        )

    def lists(self) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence, best first."""
        return to_hypotheses(self.tokens, self.scores, self.log_probabilities, self.lengths)


def _is_worse_duplicate(
    scores: Float[Tensor, "sentences all"], keys: Int[Tensor, "sentences all"]
) -> Bool[Tensor, "sentences all"]:
    """Of which the text is that of another with a higher score, or an equal one before it."""
    order = torch.arange(scores.shape[1], device=scores.device)
    own_scores, other_scores = scores.unsqueeze(2), scores.unsqueeze(1)
    better = (other_scores > own_scores) | (
        (other_scores == own_scores) & (order < order.unsqueeze(1))
    )
    return (better & (keys.unsqueeze(2) == keys.unsqueeze(1))).any(2)


# What a hypothesis is ranked by, beyond its probability.


_UNSEEN = 1e-6  # log 0 is −∞: a token never looked at costs as much as one looked at this little


@dataclass(frozen=True, slots=True)
class Penalties:
    """score = log P(Y | X) / lp(Y) + β · cp(X; Y),   Wu et al., 2016, eq. 14.

    lp(Y) = ((5 + |Y|) / 6)^α, where |Y| counts the factors of P: the tokens, and END if it came.
    cp(X; Y) = Σ_i log min(Σ_t a_ti, 1) over the real source tokens i (END included), where a_ti is
    the attention of step t; 0 when everything was looked at, negative otherwise.
    """

    length: float
    coverage: float

    def score(
        self,
        log_probability: Float[Tensor, "*rows"],
        factors: int | Int[Tensor, "*rows"],
        coverage: Float[Tensor, "*rows keys"] | None,
        token_mask: Bool[Tensor, "*#rows keys"],
    ) -> Float[Tensor, "*rows"]:
        """The score of hypotheses that all have this many factors, or each as many as a tensor
        says.
        """
        if isinstance(factors, Tensor):
            score = self.bound(log_probability, factors)
        else:
            score = log_probability / self._length_penalty(factors)
        if self.coverage == 0.0:
            return score
        if coverage is None:
            raise ConfigError(
                "a model with cross-attention for a coverage penalty",
                "a model without attention",
                "set coverage_penalty = 0",
            )
        log_coverage = coverage.to(score.dtype).clamp(_UNSEEN, 1.0).log()
        return score + self.coverage * log_coverage.masked_fill(~token_mask, 0.0).sum(-1)

    def bound(
        self, log_probability: Float[Tensor, "*rows"], most_factors: Int[Tensor, "*#rows"]
    ) -> Float[Tensor, "*rows"]:
        """What no continuation of such a hypothesis with at most so many factors scores above.

        log P / lp(most factors): log P only falls, lp only grows with the length, and cp ≤ 0.
        """
        factors = most_factors.to(log_probability.dtype)
        return log_probability / ((5.0 + factors) / 6.0) ** self.length

    def _length_penalty(self, factors: int) -> float:
        return float(((5.0 + factors) / 6.0) ** self.length)


# What the model says of the next token.


def next_log_probabilities(
    logits: Float[Tensor, "rows vocabulary"],
) -> Float[Tensor, "rows vocabulary"]:
    """log softmax(logits), in float32 at least.

    Raises:
        AttlasError: If the logits are no numbers; a search among them would find anything.
    """
    log_probabilities = log_probabilities_of(logits)
    check_numbers(log_probabilities[:, 0].isnan())
    return log_probabilities


def log_probabilities_of(
    logits: Float[Tensor, "rows vocabulary"],
) -> Float[Tensor, "rows vocabulary"]:
    """log softmax(logits), in float32 at least, unchecked.

    One NaN (or +∞) in a row makes the whole row NaN: one column shows it.
    """
    dtype = torch.promote_types(logits.dtype, torch.float32)
    return torch.log_softmax(logits, dim=-1, dtype=dtype)


def check_numbers(is_nan: Bool[Tensor, " rows"]) -> None:
    """Check that no row was found to be NaN.

    Raises:
        AttlasError: If one was.
    """
    if is_nan.any():
        raise AttlasError(
            "logits that are numbers",
            "NaN or infinity from the model",
            "use an earlier checkpoint: the weights are damaged, or the training diverged",
        )


def sums(device: torch.device) -> torch.dtype:
    """The type in which log-probabilities are summed: float64 where the device has it.

    The rounding of a long float32 sum would depend on the sentences beside it.
    """
    return torch.float32 if device.type == "mps" else torch.float64

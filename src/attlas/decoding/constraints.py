"""Which token may come next."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.data.vocabulary import BEGIN, END, PAD
from attlas.errors import AttlasError
from attlas.layers.stacked import stacked


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the tokens of each hypothesis must obey; one row per hypothesis.

    prefix: (rows, longest), padded with PAD: the tokens a hypothesis has to begin with. They come
    before every other rule and may break it (a prefix may repeat itself).
    min_length: END is forbidden before so many tokens. max_length: (rows,): no more tokens than
    these; then END or nothing.
    no_repeat_ngram = n: no n tokens in a row occur twice in a hypothesis; 0 = off. END is never
    blocked, and where END itself is forbidden (min_length) and every other token is blocked, the
    block is lifted for that hypothesis at that step: blocking alone can never kill a hypothesis.
    forbidden: ids that never come; PAD and BEGIN are among them. What is forbidden gets −∞; what is
    allowed keeps the probability that the model gave it, without renormalising.
    """

    prefix: Int[Tensor, "rows longest"]
    max_length: Int[Tensor, " rows"]
    min_length: int
    no_repeat_ngram: int
    forbidden: tuple[int, ...] = (PAD, BEGIN)

    def select(self, rows: Int[Tensor, " chosen"]) -> "Constraints":
        """These rows, in this order, repeats allowed."""
        return replace(self, prefix=self.prefix[rows], max_length=self.max_length[rows])

    def followed_by(self, other: "Constraints") -> "Constraints":
        """These rows and then those of others, which have the same rules for all."""
        return replace(
            self,
            prefix=stacked(self.prefix, other.prefix, PAD),
            max_length=stacked(self.max_length, other.max_length),
        )

    def apply(
        self,
        log_probabilities: Float[Tensor, "rows vocabulary"],
        tokens: Int[Tensor, "rows length"],
    ) -> Float[Tensor, "rows vocabulary"]:
        """−∞, in place, for what may not follow `tokens`; neighbours may share their constraints.

        Errors: `AttlasError` where a prefix holds an id that the vocabulary does not have.
        """
        length = tokens.shape[1]
        allowed = log_probabilities
        for never in self.forbidden:
            allowed[:, never] = float("-inf")
        if length < self.min_length:
            allowed[:, END] = float("-inf")
        if 0 < self.no_repeat_ngram <= length:
            allowed = _without_repeats(allowed, tokens, self.no_repeat_ngram)
        if length < self.prefix.shape[1]:
            each, size = len(tokens) // len(self.prefix), allowed.shape[1]
            wanted = self.prefix[:, length].repeat_interleave(each)
            if int(wanted.max()) >= size:
                raise AttlasError(
                    f"a prefix of ids below {size}, the size of the target vocabulary",
                    f"the id {int(wanted.max())}",
                    "make the prefix with the vocabulary of this model",
                )
            allowed = _following(wanted, allowed, log_probabilities)
        return allowed

    def full(self, length: int) -> Bool[Tensor, " rows"]:
        """Which rows hold as many tokens as they may."""
        return self.max_length <= length


def _without_repeats(
    allowed: Float[Tensor, "rows vocabulary"], tokens: Int[Tensor, "rows length"], n: int
) -> Float[Tensor, "rows vocabulary"]:
    """−∞ for every token that would complete an n-gram which `tokens` hold already."""
    grams = tokens.unfold(1, n, 1)  # (rows, length − n + 1, n)
    begun = tokens[:, tokens.shape[1] - n + 1 :].unsqueeze(1)
    repeats = (grams[..., :-1] == begun).all(-1)
    completing = grams[..., -1].masked_fill(~repeats, PAD)  # PAD is forbidden anyway
    blocked = allowed.scatter(1, completing, float("-inf"))
    stuck = torch.isneginf(blocked).all(-1, keepdim=True)
    return torch.where(stuck, allowed, blocked)


def _following(
    wanted: Int[Tensor, " rows"],
    allowed: Float[Tensor, "rows vocabulary"],
    free: Float[Tensor, "rows vocabulary"],
) -> Float[Tensor, "rows vocabulary"]:
    """Only the wanted token, with the probability the model gave it, in the rows that want one."""
    only = torch.full_like(allowed, float("-inf"))
    only = only.scatter(1, wanted.unsqueeze(1), free.gather(1, wanted.unsqueeze(1)))
    return torch.where((wanted == PAD).unsqueeze(1), allowed, only)

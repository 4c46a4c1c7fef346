"""The finished hypotheses of each sentence."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.data.vocabulary import PAD
from attlas.decoding.hypothesis import Hypothesis, listed
from attlas.decoding.largest import largest
from attlas.layers.stacked import stacked
from attlas.models.joining import of_both

_NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class Finished:
    """The best finished hypotheses of each sentence so far, best first; score −∞ = a free place.

    keys: what their texts have in common where they are the same (`Hashes`), and then only the best
    of them has a place; None: all texts are different.
    """

    tokens: Int[Tensor, "sentences places longest"]
    lengths: Int[Tensor, "sentences places"]
    scores: Float[Tensor, "sentences places"]
    log_probabilities: Float[Tensor, "sentences places"]
    keys: Int[Tensor, "sentences places"] | None = None

    @classmethod
    def none(
        cls, sentences: int, places: int, like: Float[Tensor, "..."], *, keyed: bool
    ) -> "Finished":
        """No finished hypothesis yet; numbers have the type and the device of `like`."""
        nothing = like.new_full((sentences, places), _NEVER)
        lengths = torch.zeros(sentences, places, dtype=torch.long, device=like.device)
        keys = lengths if keyed else None
        return cls(lengths.new_empty(sentences, places, 0), lengths, nothing, nothing, keys)

    def select(self, rows: Int[Tensor, " chosen"]) -> "Finished":
        """The hypotheses of these sentences."""
        return Finished(
            self.tokens[rows],
            self.lengths[rows],
            self.scores[rows],
            self.log_probabilities[rows],
            None if self.keys is None else self.keys[rows],
        )

    def followed_by(self, other: "Finished") -> "Finished":
        """These sentences, and then others with as many places."""
        return Finished(
            stacked(self.tokens, other.tokens, PAD),
            stacked(self.lengths, other.lengths),
            stacked(self.scores, other.scores),
            stacked(self.log_probabilities, other.log_probabilities),
            of_both(self.keys, other.keys, stacked),
        )

    def joined(
        self,
        tokens: Int[Tensor, "sentences width length"],
        scores: Float[Tensor, "sentences width"],
        log_probabilities: Float[Tensor, "sentences width"],
        keys: Int[Tensor, "sentences width"] | None = None,
    ) -> "Finished":
        """The best of these and of newcomers; equals stay before them; −∞ is no newcomer."""
        if torch.isneginf(scores).all():
            return self
        length = tokens.shape[2]
        padded = F.pad(self.tokens, (0, length - self.tokens.shape[2]), value=PAD)
        lengths = torch.cat([self.lengths, self.lengths.new_full(scores.shape, length)], 1)
        scores = torch.cat([self.scores, scores], 1)
        log_probabilities = torch.cat([self.log_probabilities, log_probabilities], 1)
        if self.keys is not None and keys is not None:
            keys = torch.cat([self.keys, keys], 1)
            again = _said_better(scores, keys)
            scores = scores.masked_fill(again, _NEVER)
            log_probabilities = log_probabilities.masked_fill(again, _NEVER)
        best, places = largest(scores, self.scores.shape[1])
        return Finished(
            torch.cat([padded, tokens], 1).gather(1, places.unsqueeze(-1).expand(-1, -1, length)),
            lengths.gather(1, places),
            best,
            log_probabilities.gather(1, places),
            None if keys is None else keys.gather(1, places),
        )

    def lists(self) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence, best first."""
        return listed(self.tokens, self.scores, self.log_probabilities, self.lengths)


def _said_better(
    scores: Float[Tensor, "sentences all"], keys: Int[Tensor, "sentences all"]
) -> Bool[Tensor, "sentences all"]:
    """Of which the text is that of another with a higher score, or an equal one before it."""
    order = torch.arange(scores.shape[1], device=scores.device)
    ours, theirs = scores.unsqueeze(2), scores.unsqueeze(1)
    better = (theirs > ours) | ((theirs == ours) & (order < order.unsqueeze(1)))
    return (better & (keys.unsqueeze(2) == keys.unsqueeze(1))).any(2)

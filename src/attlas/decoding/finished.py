"""The finished hypotheses of each sentence."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from attlas.data.vocabulary import PAD
from attlas.decoding.hypothesis import Hypothesis, listed
from attlas.decoding.largest import largest
from attlas.layers.stacked import stacked


@dataclass(frozen=True, slots=True)
class Finished:
    """The best finished hypotheses of each sentence so far, best first; score −∞ = a free place."""

    tokens: Int[Tensor, "sentences places longest"]
    lengths: Int[Tensor, "sentences places"]
    scores: Float[Tensor, "sentences places"]
    log_probabilities: Float[Tensor, "sentences places"]

    @classmethod
    def none(cls, sentences: int, places: int, like: Float[Tensor, "..."]) -> "Finished":
        """No finished hypothesis yet; numbers have the type and the device of `like`."""
        nothing = like.new_full((sentences, places), float("-inf"))
        lengths = torch.zeros(sentences, places, dtype=torch.long, device=like.device)
        return cls(lengths.new_empty(sentences, places, 0), lengths, nothing, nothing)

    @property
    def worst(self) -> Float[Tensor, " sentences"]:
        """The score that a newcomer has to beat; −∞ while a place is free."""
        return self.scores[:, -1]

    def select(self, rows: Int[Tensor, " chosen"]) -> "Finished":
        """The hypotheses of these sentences."""
        return Finished(
            self.tokens[rows], self.lengths[rows], self.scores[rows], self.log_probabilities[rows]
        )

    def followed_by(self, other: "Finished") -> "Finished":
        """These sentences, and then others with as many places."""
        return Finished(
            stacked(self.tokens, other.tokens, PAD),
            stacked(self.lengths, other.lengths),
            stacked(self.scores, other.scores),
            stacked(self.log_probabilities, other.log_probabilities),
        )

    def joined(
        self,
        tokens: Int[Tensor, "sentences width length"],
        scores: Float[Tensor, "sentences width"],
        log_probabilities: Float[Tensor, "sentences width"],
    ) -> "Finished":
        """The best of these and of newcomers; equals stay before them; −∞ is no newcomer."""
        if torch.isneginf(scores).all():
            return self
        length = tokens.shape[2]
        padded = F.pad(self.tokens, (0, length - self.tokens.shape[2]), value=PAD)
        lengths = torch.cat([self.lengths, self.lengths.new_full(scores.shape, length)], 1)
        best, places = largest(torch.cat([self.scores, scores], 1), self.scores.shape[1])
        return Finished(
            torch.cat([padded, tokens], 1).gather(1, places.unsqueeze(-1).expand(-1, -1, length)),
            lengths.gather(1, places),
            best,
            torch.cat([self.log_probabilities, log_probabilities], 1).gather(1, places),
        )

    def lists(self) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence, best first."""
        return listed(self.tokens, self.scores, self.log_probabilities, self.lengths)

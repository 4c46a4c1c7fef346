"""Greedy search."""

from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.decoding.constraints import Constraints
from attlas.decoding.largest import largest
from attlas.decoding.path import Paths
from attlas.decoding.penalties import Penalties
from attlas.models.sequence_to_sequence import S, SequenceToSequence


def greedy_search(
    model: SequenceToSequence[S],
    state: S,
    real: Bool[Tensor, "batch slots"],
    constraints: Constraints,
    penalties: Penalties,
    first: int = 0,
) -> Paths[S]:
    """y_t = argmax P(y | y_<t, X): the most probable token each time, one hypothesis a sentence.

    Equally probable tokens: the lowest id. The penalties make the score, not the choice. The search
    before its first token; `first` is the number of its first sentence.
    """
    return Paths.begun(model, state, real, constraints, penalties, _most_probable, first)


def _most_probable(
    log_probabilities: Float[Tensor, "rows vocabulary"], rows: Int[Tensor, " rows"], step: int
) -> Int[Tensor, " rows"]:
    return largest(log_probabilities, 1)[1].squeeze(1)  # in a fraction of the time of argmax

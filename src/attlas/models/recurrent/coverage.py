"""Coverage: the attention knows where it has looked."""

from dataclasses import replace

from jaxtyping import Float
from torch import Tensor, nn

from attlas.layers import Memory


class Coverage(nn.Module):
    """v · tanh(W s + U h_j + w_c c_j),  c_j = Σ of the weights on slot j so far.

    See, Liu & Manning, 2017, eq. 10 and 11; Tu et al., 2016. The term that coverage adds depends
    on the slot alone, so it is added to the keys that the attention remembers.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.of_coverage = nn.Linear(1, hidden, bias=False)

    def forward(self, memory: Memory, coverage: Float[Tensor, "batch slots"]) -> Memory:
        """The memory as it looks once the coverage is known."""
        covered = coverage.unsqueeze(-1).to(memory.keys.dtype)
        return replace(memory, keys=memory.keys + self.of_coverage(covered))

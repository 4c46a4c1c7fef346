"""From ids to vectors."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from attlas.errors import AttlasError


class Embedding(nn.Embedding):
    """One vector per token of a vocabulary, drawn from N(0, 1/width), so that its norm is 1.

    side: whose ids these are, "source" or "target", for the error about an id outside of it.
    """

    def __init__(self, count: int, width: int, side: str) -> None:
        super().__init__(count, width)
        self.side = side

    def reset_parameters(self) -> None:
        """Draw the vectors anew."""
        nn.init.normal_(self.weight, std=self.embedding_dim**-0.5)

    def forward(self, ids: Int[Tensor, "*positions"]) -> Float[Tensor, "*positions width"]:
        """The vectors of these ids."""
        try:
            return super().forward(ids)
        except IndexError:
            wrong = ids[(ids < 0) | (ids >= self.num_embeddings)]
            raise AttlasError(
                f"{self.side} ids from 0 to {self.num_embeddings - 1}",
                str(int(wrong[0])),
                "number the text with the vocabulary that this model was built for",
            ) from None

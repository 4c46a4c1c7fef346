"""The recurrent encoder–decoder."""

from typing import Literal

from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.errors import AttlasError
from attlas.layers import Dropout
from attlas.models.embedding import Embedding
from attlas.models.output import Output
from attlas.models.recurrent.decoder import Decoder
from attlas.models.recurrent.encoder import Encoder
from attlas.models.recurrent.state import RecurrentState
from attlas.models.rows import check_rows
from attlas.models.sequence_to_sequence import SequenceToSequence
from attlas.models.source import ids_of


class RecurrentModel(SequenceToSequence[RecurrentState]):
    """Embeddings, an encoder, a decoder with or without attention, and the vocabulary layer.

    Dropout falls on both embeddings and on the features; `Encoder` and `Recurrence` have their own
    between layers. The attention, where there is one, is the layer "decoder.attention". Without a
    source embedding the languages share the target's.
    """

    def __init__(
        self,
        source_embedding: Embedding | None,
        target_embedding: Embedding,
        encoder: Encoder,
        decoder: Decoder,
        output: Output,
        dropout: float,
    ) -> None:
        super().__init__()
        self.source_embedding = source_embedding
        self.target_embedding = target_embedding
        self.encoder = encoder
        self.decoder = decoder
        self.output = output
        self.dropout = Dropout(dropout)

    def encode(
        self,
        source: Int[Tensor, "batch slots"],
        real: Bool[Tensor, "batch slots"] | None = None,
    ) -> RecurrentState:
        source = ids_of(source, real)
        own = self.source_embedding
        embedding = self.target_embedding if own is None else own
        embedded = self.dropout(embedding(source))
        return self.decoder.start(self.encoder(embedded, real), real)

    def step(
        self, tokens: Int[Tensor, " batch"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch vocabulary"], RecurrentState]:
        check_rows("token", state.rows, len(tokens))
        features, after = self.decoder.step(self._target(tokens), state)
        return self.logits(self.dropout(features)), after

    def features(
        self, target: Int[Tensor, "batch queries"], state: RecurrentState
    ) -> Float[Tensor, "batch queries width"]:
        if target.shape[1] == 0:
            raise AttlasError(
                "a target of at least one token", "an empty one", "begin it with the begin token"
            )
        check_rows("target", state.rows, len(target))
        features: Tensor = self.dropout(self.decoder.features(self._target(target), state))
        return features

    def logits(
        self, features: Float[Tensor, "*positions width"]
    ) -> Float[Tensor, "*positions vocabulary"]:
        logits: Tensor = self.output(features, self.target_embedding.weight)
        return logits

    def between(self, layer: str) -> Literal["source", "target", "across"]:
        return "across"

    def _target(self, tokens: Int[Tensor, "*positions"]) -> Float[Tensor, "*positions embedding"]:
        embedded: Tensor = self.dropout(self.target_embedding(tokens))
        return embedded

"""The recurrent encoder."""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attlas.errors import AttlasError
from attlas.layers.padding import without_junk
from attlas.models.recurrent.padded_lstm import faster_padded, padded_lstm
from attlas.models.recurrent.precision import computable
from attlas.models.source import check_source


@dataclass(frozen=True, slots=True)
class Encoded:
    """What an encoder makes of a source.

    outputs: one vector per slot, forward and backward side by side, zero in padding. final: the
    state in which each direction of each layer ended (h of a GRU; h and c of an LSTM); the
    backward direction ends at the first token.
    """

    outputs: Float[Tensor, "batch slots width"]
    final: tuple[Float[Tensor, "batch layers directions hidden"], ...]


class Encoder(nn.Module):
    """h_j = [→h_j; ←h_j]    Bahdanau, Cho & Bengio, 2015, section 3.2; n layers of GRU or LSTM.

    Padding changes nothing: batches are packed, or read by `padded_lstm` where that is faster. A
    row without a real token encodes to zeros.
    """

    def __init__(
        self,
        cell: Literal["gru", "lstm"],
        width: int,
        hidden: int,
        layers: int,
        bidirectional: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        kind = nn.GRU if cell == "gru" else nn.LSTM
        between = dropout if layers > 1 else 0.0
        self.rnn = kind(
            width, hidden, layers, batch_first=True, dropout=between, bidirectional=bidirectional
        )

    def forward(
        self,
        embedded: Float[Tensor, "batch slots width"],
        real: Bool[Tensor, "batch slots"] | None = None,
    ) -> Encoded:
        """Read every row from its first to its last real token; padding is on the right."""
        check_source(embedded)
        if real is None or real.all():
            with computable(embedded) as fit:
                outputs, final = self.rnn(fit(embedded))
            return Encoded(outputs, self._apart(final))
        if (real[:, 1:] & ~real[:, :-1]).any():
            raise AttlasError(
                "padding on the right of every source",
                "a real token after padding",
                "put the tokens of each row first",
            )
        lengths = real.sum(1)
        if isinstance(self.rnn, nn.LSTM) and faster_padded(self.rnn, embedded, lengths):
            outputs, final = padded_lstm(self.rnn, without_junk(embedded, real), lengths)
            return Encoded(outputs, self._apart(final))
        # Packing refuses empty rows: they read one slot of padding, and it is wiped out after.
        with computable(embedded) as fit:
            packed = pack_padded_sequence(
                fit(embedded), lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
            )
            outputs, final = self.rnn(packed)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True, total_length=embedded.shape[1])
        empty = (lengths == 0)[:, None, None]
        wiped = tuple(p.masked_fill(empty.unsqueeze(-1), 0.0) for p in self._apart(final))
        return Encoded(outputs.masked_fill(empty, 0.0), wiped)

    def _apart(
        self, final: Tensor | tuple[Tensor, ...]
    ) -> tuple[Float[Tensor, "batch layers directions hidden"], ...]:
        parts = final if isinstance(final, tuple) else (final,)
        layers = self.rnn.num_layers
        return tuple(
            part.reshape(layers, -1, *part.shape[1:]).permute(2, 0, 1, 3) for part in parts
        )

"""The recurrent encoder."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attlas.errors import AttlasError
from attlas.layers.base import zero_padding
from attlas.models.embedding import Output
from attlas.models.encoder_decoder import check_source
from attlas.ops.linear import Linear
from attlas.ops.lstm import padded_lstm, padded_lstm_is_faster, supported_dtype

# From the encoder to the decoder's initial state.


class Bridge(nn.Module):
    """s_0 = tanh(W_s ←h_1)    Bahdanau, Cho & Bengio, 2015, appendix A.2.2, for every layer.

    With an LSTM a second matrix makes the cache cell from the encoder's. directions = 1: W_s reads
    the backward direction's state, or the last state of a unidirectional encoder; 2: the forward
    direction's last state beside it, for a decoder that has nothing else of the source.
    """

    def __init__(
        self,
        cell: Literal["gru", "lstm"],
        input_dim: int,
        hidden_dim: int,
        layers: int,
        directions: int,
    ) -> None:
        super().__init__()
        self.directions = directions
        parts = 1 if cell == "gru" else 2  # matrices of h for every layer, then of c
        self.matrices = nn.ModuleList(
            Linear(directions * input_dim, hidden_dim) for _ in range(parts * layers)
        )

    def forward(
        self, final: tuple[Float[Tensor, "batch layers directions dim"], ...]
    ) -> tuple[Float[Tensor, "batch layers hidden_dim"], ...]:
        """The decoder's initial state."""
        final_states = torch.cat(final, dim=1)[:, :, -self.directions :].flatten(2).unbind(1)
        states = [
            torch.tanh(linear(x)) for linear, x in zip(self.matrices, final_states, strict=True)
        ]
        return torch.stack(states, dim=1).chunk(len(final), dim=1)


@dataclass(frozen=True, slots=True)
class Encoded:
    """The outputs of an encoder.

    Args:
        outputs: One vector per position, forward and backward side by side, zero in padding.
        final: The state in which each direction of each layer ended (h of a GRU; h and c of an
            LSTM); the backward direction ends at the first token.
    """

    outputs: Float[Tensor, "batch keys dim"]
    final: tuple[Float[Tensor, "batch layers directions hidden_dim"], ...]


class RecurrentEncoder(nn.Module):
    """h_j = [→h_j; ←h_j]    Bahdanau, Cho & Bengio, 2015, section 3.2; n layers of GRU or LSTM.

    Padding has no effect: batches are packed, or read by `padded_lstm` if that is faster. A row
    without a token encodes to zeros.
    """

    def __init__(
        self,
        cell: Literal["gru", "lstm"],
        input_dim: int,
        hidden_dim: int,
        layers: int,
        bidirectional: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        kind = nn.GRU if cell == "gru" else nn.LSTM
        between = dropout if layers > 1 else 0.0
        self.rnn = kind(
            input_dim,
            hidden_dim,
            layers,
            batch_first=True,
            dropout=between,
            bidirectional=bidirectional,
        )

    def forward(
        self,
        embedded: Float[Tensor, "batch keys dim"],
        token_mask: Bool[Tensor, "batch keys"] | None = None,
    ) -> Encoded:
        """Read every row from its first to its last token; padding is on the right."""
        check_source(embedded)
        if token_mask is None or token_mask.all():
            with supported_dtype(embedded) as fit:
                outputs, final = self.rnn(fit(embedded))
            return Encoded(outputs, self._apart(final))
        if (token_mask[:, 1:] & ~token_mask[:, :-1]).any():
            raise AttlasError(
                "padding on the right of every source",
                "a real token after padding",
                "put the tokens of each row first",
            )
        lengths = token_mask.sum(1)
        if isinstance(self.rnn, nn.LSTM) and padded_lstm_is_faster(self.rnn, embedded, lengths):
            outputs, final = padded_lstm(self.rnn, zero_padding(embedded, token_mask), lengths)
            return Encoded(outputs, self._apart(final))
        # Packing refuses empty rows: they read one position of padding, which is zeroed afterwards.
        with supported_dtype(embedded) as fit:
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
    ) -> tuple[Float[Tensor, "batch layers directions hidden_dim"], ...]:
        parts = final if isinstance(final, tuple) else (final,)
        layers = self.rnn.num_layers
        return tuple(
            part.reshape(layers, -1, *part.shape[1:]).permute(2, 0, 1, 3) for part in parts
        )


# Initialisation.


def initialise(model: nn.Module) -> None:
    """Draw every parameter of `model` from torch's generator.

    Embeddings: N(0, 1/width), so that a token's vector has norm 1 and a tied output starts with
    small logits. Matrices: uniform with the variance 2 / (in + out) (Glorot & Bengio, 2010), those
    of a recurrent layer gate by gate. Recurrent matrices: orthogonal for each gate (Saxe et al.,
    2014), so that a state keeps its length over many steps. Biases: 0, but 1 for the forget gate
    of an LSTM (Gers et al., 2000; Jozefowicz et al., 2015).
    """
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
        elif isinstance(module, nn.Linear | Output):
            if module.weight is not None:
                nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.GRU | nn.LSTM):
            _recurrent(module)


@torch.no_grad()
def _recurrent(rnn: nn.GRU | nn.LSTM) -> None:
    gates = 4 if isinstance(rnn, nn.LSTM) else 3
    for name, parameter in rnn.named_parameters():
        for number, gate in enumerate(parameter.chunk(gates)):
            if name.startswith("weight_hh"):
                nn.init.orthogonal_(gate)
            elif name.startswith("weight_ih"):
                nn.init.xavier_uniform_(gate)
            else:  # the gates of an LSTM are input, forget, cell, output; its two biases add up
                forget = gates == 4 and number == 1 and name.startswith("bias_ih")
                nn.init.constant_(gate, 1.0 if forget else 0.0)

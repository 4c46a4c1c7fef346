"""The decoder's layers of GRU or LSTM cells: over a whole target at once, or step by step."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attlas.models.cache import SourceCache
from attlas.models.encoder_decoder import check_positions, join_optional
from attlas.ops.cache import pad_and_concat
from attlas.ops.deferred_linear import DeferredLinear
from attlas.ops.dropout import Dropout
from attlas.ops.linear import linear
from attlas.ops.lstm import supported_dtype

# The state of a recurrent decoder.


Hidden = tuple[Float[Tensor, "batch layers hidden_dim"], ...]
"""The recurrent state, rows first: (h,) of a GRU, (h, c) of an LSTM."""


@dataclass(frozen=True, slots=True)
class RecurrentState:
    """One row per hypothesis; frozen, so that a step leaves the state before it as it was.

    Args:
        source: The attention's cache of the source, held once per source.
        coverage: Σ of the weights each position was read with so far.
        attended: Luong's last attentional vector, if it is fed back; else None.
        position: How many target tokens have been read.
    """

    hidden: Hidden
    source: SourceCache | None = None
    coverage: Float[Tensor, "batch keys"] | None = None
    attended: Float[Tensor, "batch dim"] | None = None
    position: int = 0

    @property
    def rows(self) -> int:
        """How many hypotheses there are."""
        return self.hidden[0].shape[0]

    def with_coverage(self) -> "RecurrentState":
        """The same state: a decoder with attention always counts."""
        return self

    def concat(self, other: "RecurrentState") -> "RecurrentState":
        """These rows and then those of another state, which has read as many target tokens."""
        check_positions(self.position, other.position)
        hidden = zip(self.hidden, other.hidden, strict=True)
        return replace(
            self,
            hidden=tuple(pad_and_concat(*parts) for parts in hidden),
            source=join_optional(self.source, other.source, SourceCache.concat),
            coverage=join_optional(self.coverage, other.coverage, pad_and_concat),
            attended=join_optional(self.attended, other.attended, pad_and_concat),
        )

    def select(self, rows: Int[Tensor, " chosen"]) -> "RecurrentState":
        """These batch rows, in this order, repeats allowed."""
        return replace(
            self,
            hidden=tuple(part.index_select(0, rows) for part in self.hidden),
            source=None if self.source is None else self.source.select(rows),
            coverage=None if self.coverage is None else self.coverage.index_select(0, rows),
            attended=None if self.attended is None else self.attended.index_select(0, rows),
        )


Gates = Float[Tensor, "batch gates"]
Cell = tuple[Float[Tensor, "batch hidden_dim"], ...]
"""The state of one layer: (h,) of a GRU, (h, c) of an LSTM."""


class Recurrence(nn.Module):
    """(h_1 … h_T) = RNN(x_1 … x_T; h_0), n layers, dropout between them.

    `forward` is for inputs known from the start: one call of PyTorch's RNN. `unrolled` is for
    inputs of which a part, `fed`, is known only when its step comes; `step` is for one step alone.
    All three compute the same.
    """

    def __init__(
        self,
        cell: Literal["gru", "lstm"],
        input_dim: int,
        hidden_dim: int,
        layers: int,
        dropout: float,
    ) -> None:
        super().__init__()
        kind = nn.GRU if cell == "gru" else nn.LSTM
        between = dropout if layers > 1 else 0.0
        self.rnn = kind(input_dim, hidden_dim, layers, batch_first=True, dropout=between)

    def forward(
        self, inputs: Float[Tensor, "batch steps dim"], hidden: Hidden
    ) -> Float[Tensor, "batch steps hidden_dim"]:
        """The top layer's state after every step."""
        state = tuple(part.transpose(0, 1).contiguous() for part in hidden)
        with supported_dtype(inputs) as fit:
            start = tuple(map(fit, state))
            outputs: Tensor = self.rnn(fit(inputs), start if len(start) > 1 else start[0])[0]
        return outputs

    def step(
        self, entering: Float[Tensor, "batch dim"], hidden: Hidden
    ) -> tuple[Float[Tensor, "batch hidden_dim"], Hidden]:
        """The top layer's state after one step, and every layer's."""
        # Not PyTorch's RNN: on a CPU its LSTM rearranges all weights with every call.
        cells = self.unrolled(entering.unsqueeze(1), hidden)
        return cells.step(), cells.hidden

    def unrolled(
        self, known_input: Float[Tensor, "batch steps known_dim"], hidden: Hidden
    ) -> "Unrolled":
        """The same, one step at a time: x_t = [known_t; fed_t]."""
        return Unrolled(self.rnn, known_input, hidden)


class Unrolled:
    """A running recurrence. Everything that does not depend on `fed` is computed in advance."""

    def __init__(
        self,
        rnn: nn.GRU | nn.LSTM,
        known_input: Float[Tensor, "batch steps known_dim"],
        hidden: Hidden,
    ) -> None:
        self._advance = _gru if isinstance(rnn, nn.GRU) else _lstm
        self._dropout = Dropout(rnn.dropout).train(rnn.training)
        self._weights = rnn.all_weights  # per layer: of the input, of the state; their biases
        of_input, _, bias, _ = self._weights[0]
        input_dim = known_input.shape[-1]
        of_known, of_fed = of_input[:, :input_dim], of_input[:, input_dim:]
        if known_input.shape[1] > 1:  # some columns of a matrix are multiplied slowly, see `linear`
            of_known, of_fed = of_known.contiguous(), of_fed.contiguous()
        self._of_fed = _step_map(of_fed)
        self._of_state = [_step_map(weight, bias) for _, weight, _, bias in self._weights]
        # Steps first, so that the gates of one step lie together.
        gates = linear(known_input.transpose(0, 1), of_known, bias)
        self._known = iter(gates.unbind(0))
        self._cells: list[Cell] = [
            tuple(part[:, layer] for part in hidden) for layer in range(rnn.num_layers)
        ]

    @property
    def top(self) -> Float[Tensor, "batch hidden_dim"]:
        """The top layer's state."""
        return self._cells[-1][0]

    @property
    def hidden(self) -> Hidden:
        """Every layer's state."""
        return tuple(torch.stack(part, dim=1) for part in zip(*self._cells, strict=True))

    def step(
        self, fed: Float[Tensor, "batch fed_dim"] | None = None
    ) -> Float[Tensor, "batch hidden_dim"]:
        """Take the next step; None = its whole input was known. Return the top layer's state."""
        gates = next(self._known)
        if fed is not None:
            gates = gates + self._of_fed(fed)
        for layer, (of_input, _, bias, _) in enumerate(self._weights):
            if layer:
                x = self._dropout(self._cells[layer - 1][0])
                gates = linear(x, of_input, bias)
            cell = self._cells[layer]
            state_gates = self._of_state[layer](cell[0])
            self._cells[layer] = self._advance(gates, state_gates, cell)
        return self.top


def _step_map(
    weight: Float[Tensor, "outputs inputs"], bias: Float[Tensor, " outputs"] | None = None
) -> Callable[[Tensor], Tensor]:
    """W x + b of one step; with gradients, that of the matrix waits for the last step."""
    if torch.is_grad_enabled():
        return DeferredLinear(weight, bias)
    return partial(linear, weight=weight, bias=bias)


def _gru(of_input: Gates, of_state: Gates, cell: Cell) -> Cell:
    """r, z = σ(i + h);  n = tanh(i_n + r · h_n);  h' = (1 − z) n + z h    Cho et al., 2014.

    The reset gate acts behind the matrix, as in cuDNN and `nn.GRU`.
    """
    (h,) = cell
    widths = [2 * h.shape[1], h.shape[1]]
    (of_input, new_of_input), (of_state, new_of_state) = (
        torch.split(gates, widths, dim=1) for gates in (of_input, of_state)
    )
    reset, update = torch.sigmoid(of_input + of_state).chunk(2, dim=1)
    new = torch.tanh(torch.addcmul(new_of_input, reset, new_of_state))
    return (torch.lerp(new, h, update),)


def _lstm(of_input: Gates, of_state: Gates, cell: Cell) -> Cell:
    """i, f, o = σ(·), g = tanh(·);  c' = f c + i g;  h' = o tanh(c')    Gers et al., 2000."""
    _, c = cell
    enter, forget, new, leave = (of_input + of_state).chunk(4, dim=1)
    c = torch.addcmul(torch.sigmoid(forget) * c, torch.sigmoid(enter), torch.tanh(new))
    return torch.sigmoid(leave) * torch.tanh(c), c

"""An LSTM over rows of several lengths, without packing them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from attlas.ops.linear import is_plain_cpu_float32, is_traced_or_transformed
from attlas.recording.hooks import has_hooks

_SHUT = -1e4  # σ of it is 0, and so is its slope


def padded_lstm_is_faster(
    rnn: nn.LSTM, embedded: Float[Tensor, "batch length dim"], lengths: Int[Tensor, " batch"]
) -> bool:
    """Return True if `padded_lstm` supports this and is faster: if torch runs the LSTM by oneDNN.

    oneDNN takes whole batches alone; packed ones go step by step through small products, in about
    twice the time: worth it where at most a third of the positions is padding. On a GPU packing
    costs nothing.
    """
    return (
        not torch.compiler.is_compiling()
        and all(is_plain_cpu_float32(tensor) for tensor in (embedded, *rnn.parameters()))
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and bool(torch.backends.mkldnn.enabled)
        and not torch.is_autocast_enabled("cpu")
        and not is_traced_or_transformed()
        and not has_hooks([rnn])
        and 3 * int(lengths.sum()) >= 2 * lengths.numel() * embedded.shape[1]
    )


def padded_lstm(
    rnn: nn.LSTM, embedded: Float[Tensor, "batch length dim"], lengths: Int[Tensor, " batch"]
) -> tuple[
    Float[Tensor, "batch length outputs"], tuple[Float[Tensor, "each batch hidden_dim"], ...]
]:
    """What `rnn` makes of packed rows, each its first `lengths` positions: outputs, zero behind
    them, and the last h and c of each direction of each layer.

    Each direction reads the padding first, the forward one of rows that are rolled to the right,
    the backward one as it lies. There an input of its own shuts the gate that lets something in:
    i = σ(… − 10⁴) = 0, so c = f · 0 + 0 · g = 0 and h = o tanh(c) = 0, until the first token. What
    is behind a row, if it is finite, then never touches it, nor its gradient, which i (1 − i) = 0
    stops.
    """
    batch, max_length = embedded.shape[:2]
    key = torch.arange(max_length, device=embedded.device)
    rows = torch.arange(batch, device=embedded.device).unsqueeze(1) * max_length
    gap = (max_length - lengths).unsqueeze(1)
    rolled = (rows + (key - gap) % max_length).flatten()
    unrolled = (rows + (key + gap) % max_length).flatten()
    absent = (key < gap).to(embedded.dtype).unsqueeze(-1)
    zeros = embedded.new_zeros(1, batch, rnn.hidden_size)
    shut = embedded.new_zeros(4 * rnn.hidden_size, 1)
    shut[: rnn.hidden_size] = _SHUT
    weights = iter(rnn.all_weights)
    final: list[tuple[Tensor, Tensor]] = []
    for layer in range(rnn.num_layers):
        inputs = F.dropout(embedded, rnn.dropout, rnn.training) if layer else embedded
        outputs = []
        for backwards in (False, True) if rnn.bidirectional else (False,):
            x = inputs.flip(1) if backwards else _reorder(inputs, rolled)
            of_input, *others = next(weights)
            output, h, c = torch._VF.lstm(
                torch.cat([x, absent], dim=2),
                (zeros, zeros),
                [torch.cat([of_input, shut], dim=1), *others],
                *(rnn.bias, 1, 0.0, rnn.training, False, True),  # one layer, forwards, batch first
            )
            outputs.append(output.flip(1) if backwards else _reorder(output, unrolled))
            final.append((h, c))
        embedded = torch.cat(outputs, dim=2)
    return embedded, tuple(torch.cat(part) for part in zip(*final, strict=True))


def _reorder(
    x: Float[Tensor, "batch length dim"], positions: Int[Tensor, " every"]
) -> Float[Tensor, "batch length dim"]:
    return x.flatten(0, 1).index_select(0, positions).view_as(x)


# What PyTorch's recurrent layers can compute in half precision.


@contextmanager
def supported_dtype(inputs: Tensor) -> Iterator[Callable[[Tensor], Tensor]]:
    """Within, an LSTM of float32 computes in float32 where autocast would ask too much of a CPU.

    What is yielded makes of a tensor one that it can be given: of float32 there, else as it is.

    Without AVX-512 a CPU has no LSTM in bfloat16: PyTorch raises a RuntimeError of its own.
    """
    is_autocast = inputs.device.type == "cpu" and torch.is_autocast_enabled("cpu")
    if not is_autocast or torch.ops.mkldnn._is_mkldnn_bf16_supported():
        yield lambda tensor: tensor
        return
    with torch.autocast("cpu", enabled=False):
        yield Tensor.float

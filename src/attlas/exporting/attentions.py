"""The matrices of an attention, one for every head."""

from torch import Tensor, nn

from attlas.layers import MultiHead

Linear = tuple[Tensor, Tensor | None]
"""Weight (outputs, inputs) and bias (outputs,), if there is one."""


def all_heads(attention: MultiHead) -> tuple[Linear, Linear, Linear]:
    """Query, key and value maps with as many heads of keys as of queries.

    Heads that share keys get a copy each: the same numbers, for a format without shared keys.
    """
    query = attention.of_query.weight, attention.of_query.bias
    each = attention.heads // attention.key_heads
    return (
        query,
        _repeated(attention.of_key, attention.key_heads, each),
        _repeated(attention.of_value, attention.key_heads, each),
    )


def _repeated(linear: nn.Linear, heads: int, each: int) -> Linear:
    bias: Tensor | None = linear.bias
    return _copies(linear.weight, heads, each), None if bias is None else _copies(bias, heads, each)


def _copies(tensor: Tensor, heads: int, each: int) -> Tensor:
    """Each head's rows `each` times, side by side."""
    apart = tensor.reshape(heads, -1, *tensor.shape[1:])
    return apart.repeat_interleave(each, dim=0).flatten(0, 1)

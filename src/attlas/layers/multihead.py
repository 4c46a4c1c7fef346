"""Multi-head attention."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.layers.base import check_widths, without_junk
from attlas.layers.positional import RotaryPositions
from attlas.layers.scaled_dot_product import FusedAttention
from attlas.ops.cache import Memory
from attlas.ops.linear import Linear
from attlas.patterns import Pattern, everywhere


class MultiHead(FusedAttention):
    """[head₁; …; headₙ] W,  headᵢ = softmax(q Wᵢ (k Uᵢ)ᵀ / √d) v Vᵢ    Vaswani et al., 2017, 3.2.2.

    Self-attention where the query is also the source, cross-attention where it is not.
    width: of queries and contexts; source_width: of the source, None = the same.
    head_width: of the queries and keys of a head, None = width / heads; value_width: of its values,
    None = the same. key_heads: how many heads have keys and values of their own, each shared by
    heads / key_heads neighbours (Ainslie et al., GQA, 2023; 1 = Shazeer, 2019); None = all.
    bias: whether the four linear maps have one, which the paper's have not. positions: turn queries
    and keys by where they stand; None = order does not matter. pattern, dropout: as of `Attention`.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        source_width: int | None = None,
        key_heads: int | None = None,
        head_width: int | None = None,
        value_width: int | None = None,
        bias: bool = True,
        pattern: Pattern = everywhere,
        dropout: float = 0.0,
        scale: float | None = None,
        positions: RotaryPositions | None = None,
    ) -> None:
        check_widths(width=width, source_width=source_width, heads=heads, key_heads=key_heads)
        check_widths(head_width=head_width, value_width=value_width)
        _check(width, heads, key_heads, head_width, positions)
        super().__init__(pattern=pattern, dropout=dropout, scale=scale)
        self.query_width = width
        self.heads = heads
        self.key_heads = heads if key_heads is None else key_heads
        self.positions = positions
        self.source_width = width if source_width is None else source_width
        head_width = width // heads if head_width is None else head_width
        value_width = head_width if value_width is None else value_width
        self.of_query = Linear(width, heads * head_width, bias=bias)
        self.of_key = Linear(self.source_width, self.key_heads * head_width, bias=bias)
        self.of_value = Linear(self.source_width, self.key_heads * value_width, bias=bias)
        self.of_heads = Linear(heads * value_width, width, bias=bias)
        for linear in (self.of_query, self.of_key, self.of_value, self.of_heads):
            nn.init.xavier_uniform_(linear.weight)
            if bias:
                nn.init.zeros_(linear.bias)

    def remember(
        self,
        source: Float[Tensor, "batch slots source_width"],
        real: Bool[Tensor, "batch slots"] | None = None,
        first: int = 0,
    ) -> Memory:
        """Keys and values of every slot, once per source.

        `first` is the position of the first slot: with rotary positions, slots that will extend a
        memory are remembered with first = memory.slots.
        """
        self.check_source(source)
        source = without_junk(source, real)
        keys = _apart(self.of_key(source), self.key_heads)
        if self.positions is not None:
            keys = self.positions(keys, first)
        return Memory(keys, _apart(self.of_value(source), self.key_heads), real)

    def split(
        self, query: Float[Tensor, "batch queries query_width"], start: int
    ) -> Float[Tensor, "batch heads queries width"]:
        heads = _apart(self.of_query(query), self.heads)
        return heads if self.positions is None else self.positions(heads, start)

    def merge(
        self, context: Float[Tensor, "batch heads queries value_width"]
    ) -> Float[Tensor, "batch queries context_width"]:
        merged: Tensor = self.of_heads(context.transpose(1, 2).flatten(2))
        return merged


def _check(
    width: int,
    heads: int,
    key_heads: int | None,
    head_width: int | None,
    positions: RotaryPositions | None,
) -> None:
    if head_width is None and (width < heads or width % heads):
        raise AttlasError(
            "a width that the heads share evenly",
            f"width {width} for {heads} heads",
            "choose heads that divide the width, or give head_width",
        )
    if key_heads is not None and heads % key_heads:
        raise AttlasError(
            "heads that share key_heads evenly",
            f"{heads} heads for {key_heads} key_heads",
            "choose key_heads that divide the heads",
        )
    turned = width // heads if head_width is None else head_width
    if positions is not None and positions.width != turned:
        raise AttlasError(
            f"rotary positions of the head's width, {turned}",
            f"RotaryPositions({positions.width})",
            f"pass RotaryPositions({turned})",
        )


def _apart(
    joined: Float[Tensor, "batch positions heads_times_width"], heads: int
) -> Float[Tensor, "batch heads positions width"]:
    batch, positions, width = joined.shape
    return joined.reshape(batch, positions, heads, width // heads).transpose(1, 2)

"""Multi-head attention."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.layers.base import check_dims, zero_padding
from attlas.layers.positional import RotaryPositions
from attlas.layers.scaled_dot_product import DotProductAttention
from attlas.ops.cache import KeyValueCache
from attlas.ops.linear import Linear
from attlas.patterns import Pattern, everywhere


class MultiheadAttention(DotProductAttention):
    """[head₁; …; headₙ] W,  headᵢ = softmax(q Wᵢ (k Uᵢ)ᵀ / √d) v Vᵢ    Vaswani et al., 2017, 3.2.2.

    Self-attention where the query is also the source, cross-attention where it is not.
    embed_dim: of queries and contexts; key_dim: of the source, None = the same.
    head_dim: of the queries and keys of a head, None = embed_dim / num_heads; value_dim: of its
    values, None = the same. num_kv_heads: how many heads have keys and values of their own, each
    shared by num_heads / num_kv_heads neighbours (Ainslie et al., GQA, 2023; 1 = Shazeer, 2019);
    None = all. bias: whether the four linear maps have one, which the paper's have not. positions:
    turn queries and keys by where they stand; None = order does not matter. pattern, dropout: as of
    `Attention`.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        key_dim: int | None = None,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        value_dim: int | None = None,
        bias: bool = True,
        pattern: Pattern = everywhere,
        dropout: float = 0.0,
        scale: float | None = None,
        positions: RotaryPositions | None = None,
    ) -> None:
        check_dims(
            embed_dim=embed_dim, key_dim=key_dim, num_heads=num_heads, num_kv_heads=num_kv_heads
        )
        check_dims(head_dim=head_dim, value_dim=value_dim)
        _check(embed_dim, num_heads, num_kv_heads, head_dim, positions)
        super().__init__(pattern=pattern, dropout=dropout, scale=scale)
        self.query_dim = embed_dim
        self.num_heads = num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.positions = positions
        self.key_dim = embed_dim if key_dim is None else key_dim
        head_dim = embed_dim // num_heads if head_dim is None else head_dim
        value_dim = head_dim if value_dim is None else value_dim
        self.q_proj = Linear(embed_dim, num_heads * head_dim, bias=bias)
        self.k_proj = Linear(self.key_dim, self.num_kv_heads * head_dim, bias=bias)
        self.v_proj = Linear(self.key_dim, self.num_kv_heads * value_dim, bias=bias)
        self.out_proj = Linear(num_heads * value_dim, embed_dim, bias=bias)
        for linear in (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
            nn.init.xavier_uniform_(linear.weight)
            if bias:
                nn.init.zeros_(linear.bias)

    def project_kv(
        self,
        source: Float[Tensor, "batch keys key_dim"],
        token_mask: Bool[Tensor, "batch keys"] | None = None,
        key_offset: int = 0,
    ) -> KeyValueCache:
        """Keys and values of every position, once per source.

        `key_offset` is the place of the first position: with rotary positions, positions that
        will extend a cache are projected with key_offset = cache.num_keys.
        """
        self.check_source(source)
        source = zero_padding(source, token_mask)
        keys = _split_heads(self.k_proj(source), self.num_kv_heads)
        if self.positions is not None:
            keys = self.positions(keys, key_offset)
        return KeyValueCache(keys, _split_heads(self.v_proj(source), self.num_kv_heads), token_mask)

    def split_heads(
        self, query: Float[Tensor, "batch queries query_dim"], start: int
    ) -> Float[Tensor, "batch heads queries head_dim"]:
        heads = _split_heads(self.q_proj(query), self.num_heads)
        return heads if self.positions is None else self.positions(heads, start)

    def merge_heads(
        self, context: Float[Tensor, "batch heads queries value_dim"]
    ) -> Float[Tensor, "batch queries context_dim"]:
        merged: Tensor = self.out_proj(context.transpose(1, 2).flatten(2))
        return merged


def _check(
    embed_dim: int,
    num_heads: int,
    num_kv_heads: int | None,
    head_dim: int | None,
    positions: RotaryPositions | None,
) -> None:
    if head_dim is None and (embed_dim < num_heads or embed_dim % num_heads):
        raise AttlasError(
            "an embed_dim that num_heads divides",
            f"embed_dim {embed_dim} for {num_heads} heads",
            "choose num_heads that divides embed_dim, or give head_dim",
        )
    if num_kv_heads is not None and num_heads % num_kv_heads:
        raise AttlasError(
            "a num_heads that num_kv_heads divides",
            f"{num_heads} heads for {num_kv_heads} num_kv_heads",
            "choose num_kv_heads that divides num_heads",
        )
    turned = embed_dim // num_heads if head_dim is None else head_dim
    if positions is not None and positions.head_dim != turned:
        raise AttlasError(
            f"rotary positions of the head's width, {turned}",
            f"RotaryPositions({positions.head_dim})",
            f"pass RotaryPositions({turned})",
        )


def _split_heads(
    joined: Float[Tensor, "batch positions embed_dim"], num_heads: int
) -> Float[Tensor, "batch heads positions head_dim"]:
    batch, positions, embed_dim = joined.shape
    return joined.reshape(batch, positions, num_heads, embed_dim // num_heads).transpose(1, 2)

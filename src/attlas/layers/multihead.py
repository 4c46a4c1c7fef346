"""Multi-head attention."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from attlas.errors import AttlasError, UnsupportedError
from attlas.layers.base import (
    check_dims,
    check_tensor,
    split_bias,
    to_token_mask,
    warn_of_truth,
    zero_padding,
)
from attlas.layers.positional import RotaryPositions
from attlas.layers.scaled_dot_product import DotProductAttention
from attlas.ops.attention import (
    attention_weights_of,
    dense_attention,
    fused_attention,
    masked_attention,
    weighted_values,
)
from attlas.ops.cache import KeyValueCache
from attlas.ops.linear import Linear
from attlas.patterns import Pattern, causal, everywhere
from attlas.recording import FactoredAttentionMap

_MAPS = ("q", "k", "v", "out")
_EPSILON = 1e-6  # of qk_norm, as in Qwen3 and Gemma 3


class MultiheadAttention(DotProductAttention):
    """[head₁; …; headₙ] W,  headᵢ = softmax(q Wᵢ (k Uᵢ)ᵀ / √d) v Vᵢ    Vaswani et al., 2017, 3.2.2.

        attention = MultiheadAttention(512, 8, dropout=0.1, batch_first=True)
        output, weights = attention(x, x, x)                   # as torch.nn.MultiheadAttention
        cache = attention.project_kv(source, token_mask)       # for a decoder: project once,
        context = attention.attend(query, cache)               # attend at every step

    The layer takes the place of `torch.nn.MultiheadAttention`: the same arguments, masks, shapes
    and results; `load_state_dict` takes torch's state dict, `from_torch` copies a module, and
    `to_torch` makes one. What differs:

    - The weights that are returned are those before dropout; torch's are those after it.
    - A query that sees nothing reads zeros, not NaN, and what padding holds changes nothing.
    - `is_causal=True` hides the later keys with and without an `attn_mask`; torch asks for the mask
      and takes `is_causal` as a hint about it.
    - A `KeyValueCache` as key, and `query_offset`, are ours alone. Nested tensors are refused.
    - The maps of queries, keys and values are `q_proj`, `k_proj` and `v_proj`, so the state dict
      has these names. `in_proj_weight` and `in_proj_bias` are made of them when asked for: they are
      no parameters. `to_torch().state_dict()` has torch's names.
    - Fresh weights of all four maps are Xavier-uniform each: a standard deviation of
      √(2 / (inputs + outputs)), 1 / √embed_dim in a plain layer (0.125 for 64). torch draws the
      joined matrix of q, k and v so, which makes √(1 / (2 · embed_dim)) (0.088); where widths
      differ it draws each as here. Its `out_proj` has 1 / √(3 · embed_dim) (0.072).
    - Dropout on a CPU draws its numbers as `attlas.ops.dropout` does, so the same seed drops other
      weights than in torch.

    Args:
        embed_dim: the width of queries and outputs.
        num_heads: how many heads.
        dropout: the share of the weights that are left out in training.
        bias: whether the linear maps have a bias; or which of "q", "k", "v" and "out" have one.
        add_bias_kv: whether a learned key and value stand behind the others.
        add_zero_attn: whether a key and value of zeros stand behind the others.
        kdim, vdim: the width of the keys and values that are passed; None = embed_dim.
        batch_first: whether `forward` takes (batch, positions, dim). `project_kv` and `attend`
            always do.
        device, dtype: of the parameters.
        num_kv_heads: how many heads have keys and values of their own, each shared by num_heads /
            num_kv_heads neighbours (Ainslie et al., GQA, 2023; 1 = Shazeer, 2019); None = all.
        head_dim: the width of a head's queries and keys; None = embed_dim / num_heads.
        value_dim: the width of a head's values; None = head_dim.
        pattern: where each query may look.
        scale: factor of the scores; None = 1 / √head_dim.
        positions: rotary positions of queries and keys; None = order does not matter.
        qk_norm: whether each head's queries and keys pass an RMSNorm of their own gains, before
            they are rotated: q / √(mean(q²) + 10⁻⁶) · g, and k alike. Then no score exceeds
            scale · head_dim · max|g_q| · max|g_k|. Henry et al., Query-Key Normalization for
            Transformers, 2020, divide by the L2 norm; RMSNorm with gains is that of Qwen3 and
            Gemma 3. The key of `add_bias_kv` is left as it is.

    Raises:
        AttlasError: If sizes do not fit together.

    Example:
        >>> import torch, attlas
        >>> attention = attlas.layers.MultiheadAttention(16, 4, batch_first=True)
        >>> x = torch.randn(2, 5, 16)
        >>> output, weights = attention(x, x, x)
        >>> tuple(output.shape), tuple(weights.shape)
        ((2, 5, 16), (2, 5, 5))
    """

    _qkv_same_embed_dim = False  # torch's own encoder layer then leaves its fast path, and calls us

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool | Collection[str] = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        value_dim: int | None = None,
        pattern: Pattern = everywhere,
        scale: float | None = None,
        positions: RotaryPositions | None = None,
        qk_norm: bool = False,
    ) -> None:
        check_dims(embed_dim=embed_dim, num_heads=num_heads, num_kv_heads=num_kv_heads)
        check_dims(kdim=kdim, vdim=vdim, head_dim=head_dim, value_dim=value_dim)
        _check(embed_dim, num_heads, num_kv_heads, head_dim, positions)
        biased = _biased(bias)
        super().__init__(pattern=pattern, dropout=dropout, scale=scale)
        self.embed_dim = self.query_dim = embed_dim
        self.num_heads = num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.positions = positions
        self.kdim = self.key_dim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.head_dim = embed_dim // num_heads if head_dim is None else head_dim
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        value_dim = self.head_dim if value_dim is None else value_dim
        keys, values = self.num_kv_heads * self.head_dim, self.num_kv_heads * value_dim
        sizes = {
            "q": (embed_dim, num_heads * self.head_dim),
            "k": (self.kdim, keys),
            "v": (self.vdim, values),
            "out": (num_heads * value_dim, embed_dim),
        }
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            Linear(*sizes[name], bias=name in biased, device=device, dtype=dtype) for name in _MAPS
        )
        for linear in (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
            nn.init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
        self.q_norm, self.k_norm = (
            nn.RMSNorm(self.head_dim, _EPSILON, device=device, dtype=dtype) if qk_norm else None
            for _ in "qk"
        )
        self.bias_k: nn.Parameter | None
        self.bias_v: nn.Parameter | None
        self.register_parameter("bias_k", None)
        self.register_parameter("bias_v", None)
        if add_bias_kv:
            self.bias_k = nn.Parameter(torch.empty(1, 1, keys, device=device, dtype=dtype))
            self.bias_v = nn.Parameter(torch.empty(1, 1, values, device=device, dtype=dtype))
            nn.init.xavier_normal_(self.bias_k)
            nn.init.xavier_normal_(self.bias_v)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A layer that was pickled whole before there was `qk_norm` is one without it."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        for name in ("q_norm", "k_norm"):
            if name not in self._modules and name not in self.__dict__:
                setattr(self, name, None)

    @classmethod
    def from_torch(
        cls, module: nn.MultiheadAttention, *, pattern: Pattern = everywhere
    ) -> "MultiheadAttention":
        """The same attention with a copy of the parameters of a module of torch.

        Raises:
            AttlasError: `module` is no `torch.nn.MultiheadAttention`.
        """
        if not isinstance(module, nn.MultiheadAttention):
            raise AttlasError(
                "a torch.nn.MultiheadAttention",
                f"a {type(module).__name__}",
                "pass the attention module itself",
            )
        biased = module.in_proj_bias is not None
        weight = module.out_proj.weight
        attention = cls(
            module.embed_dim,
            module.num_heads,
            module.dropout,
            biased,
            module.bias_k is not None,
            module.add_zero_attn,
            module.kdim,
            module.vdim,
            module.batch_first,
            weight.device,
            weight.dtype,
            pattern=pattern,
        )
        attention.load_state_dict(module.state_dict())
        return attention.train(module.training)

    def to_torch(self) -> nn.MultiheadAttention:
        """The same attention as a module of torch, with a copy of the parameters.

        No random number is drawn.

            torch_module.load_state_dict(attention.to_torch().state_dict())

        A map without a bias beside others with one gets a bias of zeros.

        Raises:
            UnsupportedError: torch's module has not what this layer has: shared or wider heads, a
                pattern, rotary positions, qk_norm or a scale.
        """
        self._check_torch_has_it()
        maps = (self.q_proj, self.k_proj, self.v_proj, self.out_proj)
        weight = self.out_proj.weight
        module: nn.MultiheadAttention = nn.utils.skip_init(  # type: ignore[no-untyped-call]
            nn.MultiheadAttention,
            self.embed_dim,
            self.num_heads,
            self.dropout,
            any(linear.bias is not None for linear in maps),
            self.bias_k is not None,
            self.add_zero_attn,
            self.kdim,
            self.vdim,
            self.batch_first,
            device=weight.device,
            dtype=weight.dtype,
        )
        biases: list[Tensor] = [
            weight.new_zeros(len(linear.weight)) if linear.bias is None else linear.bias
            for linear in maps
        ]
        state = {
            "in_proj_weight": self.in_proj_weight,
            "q_proj_weight": self.q_proj.weight,
            "k_proj_weight": self.k_proj.weight,
            "v_proj_weight": self.v_proj.weight,
            "in_proj_bias": torch.cat(biases[:3]),
            "out_proj.weight": weight,
            "out_proj.bias": biases[3],
            "bias_k": self.bias_k,
            "bias_v": self.bias_v,
        }
        module.load_state_dict({name: state[name] for name in module.state_dict()})
        return module.train(self.training)

    def _check_torch_has_it(self) -> None:
        value_dim = self.out_proj.in_features // self.num_heads
        plain = self.embed_dim // self.num_heads
        default = self.scale is None or math.isclose(self.scale, self.head_dim**-0.5)
        differing = (
            (self.num_kv_heads != self.num_heads, f"num_kv_heads = {self.num_kv_heads}"),
            (self.head_dim * self.num_heads != self.embed_dim, f"head_dim = {self.head_dim}"),
            (value_dim * self.num_heads != self.embed_dim, f"value_dim = {value_dim}"),
            (self.pattern != everywhere, f"the pattern {self.pattern}"),
            (self.positions is not None, "rotary positions"),
            (self.q_norm is not None, "qk_norm = True"),
            (not default, f"scale = {self.scale}"),
        )
        found = [what for differs, what in differing if differs]
        if found:
            raise UnsupportedError(
                f"an attention as torch.nn.MultiheadAttention has it: {self.num_heads} heads of "
                f"width {plain} each for queries, keys and values, no pattern, no positions, no "
                "qk_norm, the default scale",
                ", ".join(found),
                "keep this layer in the model: it has the arguments and results of torch's module",
            )

    @property
    def in_proj_weight(self) -> Float[Tensor, "three_dims embed_dim"] | None:
        """The matrices of queries, keys and values below each other, as torch keeps them; None
        where their widths differ."""
        weights: list[Tensor] = [self.q_proj.weight, self.k_proj.weight, self.v_proj.weight]
        return torch.cat(weights) if len({weight.shape[1] for weight in weights}) == 1 else None

    @property
    def in_proj_bias(self) -> Float[Tensor, " three_dims"] | None:
        """The biases of queries, keys and values behind each other; None where one has none."""
        q, k, v = (projection.bias for projection in (self.q_proj, self.k_proj, self.v_proj))
        return None if q is None or k is None or v is None else torch.cat((q, k, v))

    def forward(
        self,
        query: Float[Tensor, "*positions embed_dim"],
        key: Float[Tensor, "*key_positions kdim"] | KeyValueCache | None = None,
        value: Float[Tensor, "*value_positions vdim"] | None = None,
        key_padding_mask: Shaped[Tensor, "*batch keys"] | None = None,
        need_weights: bool = True,
        attn_mask: Shaped[Tensor, "*batch_heads queries keys"] | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        query_offset: int | None = None,
    ) -> Any:
        """What `torch.nn.MultiheadAttention` returns for the same arguments.

        Args:
            query: (queries, batch, embed_dim); (batch, queries, embed_dim) if `batch_first`;
                (queries, embed_dim) without a batch.
            key, value: the same with positions in place of queries. With a `KeyValueCache` as key
                the result is that of `attend`.
            key_padding_mask: (batch, keys), or (keys,) without a batch. True = **padding**, numbers
                are added to the scores.
            need_weights: whether the weights are returned; without them a fused kernel runs.
            attn_mask: (queries, keys) or (batch · num_heads, queries, keys). True = **hidden**,
                numbers are added to the scores.
            average_attn_weights: whether the weights are the mean over the heads.
            is_causal: hides the keys that come after the query, both counted from 0.
            query_offset: the position of the first query, for `pattern`; None = the queries are the
                newest positions.

        Returns:
            `(output, weights)`. output: shaped like the query. weights: (batch, queries, keys), or
            (batch, num_heads, queries, keys) if they are not averaged, without the batch where
            there is none; None without `need_weights`.

        Raises:
            AttlasError: shapes or masks do not fit.
        """
        if isinstance(key, KeyValueCache):
            if value is not None or key_padding_mask is not None or attn_mask is not None:
                raise AttlasError(
                    "a KeyValueCache alone",
                    "a value or a mask beside it",
                    "give them to `project_kv`, which makes the cache",
                )
            return self._attend(query, key, query_offset)
        if key is None or value is None:
            raise AttlasError(
                "query, key and value",
                "the query alone" if key is None else "query and key",
                "for self-attention pass attention(x, x, x)",
            )
        batched = _check_inputs(query, key, value)
        query, key, value = (self._batch_first(tensor, batched) for tensor in (query, key, value))
        _check_sizes(query, key, value, (self.embed_dim, self.kdim, self.vdim))
        sizes = (len(query), self.num_heads, query.shape[1], key.shape[1])
        masks = _Masks.read(key_padding_mask, attn_mask, is_causal, sizes, batched)
        cache = self.project_kv(key, masks.token_mask, value=value)
        start = self.resolve_offset(query.shape[1], cache, query_offset)
        heads = self.split_heads(query, start)
        offsets = (start, query_offset)
        output, weights = self._attend_masked(heads, cache, masks, offsets, need_weights)
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return output.squeeze(0), None if weights is None else weights.squeeze(0)
        return output if self.batch_first else output.transpose(0, 1), weights

    def project_kv(
        self,
        source: Float[Tensor, "batch keys kdim"],
        token_mask: Shaped[Tensor, "batch keys"] | None = None,
        key_offset: int | Int[Tensor, " batch"] = 0,
        *,
        value: Float[Tensor, "batch keys vdim"] | None = None,
    ) -> KeyValueCache:
        """Keys and values of every position, once per source.

        Args:
            source: what keys and values are made of.
            token_mask: True or 1 = a token, False or 0 = padding.
            key_offset: the position of the first key. With rotary positions, what will extend a
                cache is projected with key_offset = cache.num_keys. A tensor holds that of each
                row, which has one position.
            value: what the values are made of; None = the source.

        Raises:
            AttlasError: shapes, widths or the mask do not fit.
        """
        self.check_source(source)
        token_mask = to_token_mask(token_mask, source)
        if value is None and self.vdim != self.kdim:
            raise AttlasError(
                f"a value of width {self.vdim} beside the source",
                "the source alone",
                "pass value=…; kdim and vdim of this layer differ",
            )
        source = zero_padding(source, token_mask)
        value = source if value is None else zero_padding(value, token_mask)
        keys = _split_heads(self.k_proj(source), self.num_kv_heads)
        if self.k_norm is not None:
            keys = self.k_norm(keys)
        if self.positions is not None:
            keys = self.positions(keys, key_offset)
        return KeyValueCache(keys, _split_heads(self.v_proj(value), self.num_kv_heads), token_mask)

    def split_heads(
        self, query: Float[Tensor, "batch queries embed_dim"], start: int | Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch heads queries head_dim"]:
        heads = _split_heads(self.q_proj(query), self.num_heads)
        if self.q_norm is not None:
            heads = self.q_norm(heads)
        return heads if self.positions is None else self.positions(heads, start)

    def merge_heads(
        self, context: Float[Tensor, "batch heads queries value_dim"]
    ) -> Float[Tensor, "batch queries embed_dim"]:
        output: Tensor = self.out_proj(context.transpose(1, 2).flatten(2))
        return output

    def _attend_masked(
        self,
        heads: Float[Tensor, "batch heads queries head_dim"],
        cache: KeyValueCache,
        masks: "_Masks",
        offsets: tuple[int, int | None],
        need_weights: bool,
    ) -> tuple[
        Float[Tensor, "batch queries embed_dim"], Float[Tensor, "batch heads queries keys"] | None
    ]:
        """The output and the weights, with masks of the caller besides the pattern.

        Args:
            offsets: The position of the first query, and the one that the caller passed.
        """
        start, query_offset = offsets
        if masks.is_empty and self.bias_k is None and not self.add_zero_attn:
            if not need_weights:
                return self._attend_heads(heads, cache, start, query_offset), None
            self._record(heads, cache, self._known_offset(start, query_offset))
            output = self._forward_with_weights(heads, cache, start)
            return output.context, output.weights
        observed = self.hook.is_recording or self.hook.is_patched
        if masks.is_only_causal and self._is_plain and not (need_weights or observed):
            context = dense_attention(
                heads, cache, causal, 0, self._scale_of(heads), self.attn_dropout.active_p
            )
            return self.merge_heads(context), None
        allowed = masks.allow(self.allowed(heads.shape[2], cache, start))
        cache, allowed, bias = self._append_learned(cache, allowed, masks.bias)
        scale = self._scale_of(heads)
        if self.hook.is_recording:
            hidden_or_added = allowed if bias is None else _hide(bias, allowed)
            self.hook.record(
                FactoredAttentionMap(
                    heads.detach(),
                    cache.keys.detach(),
                    scale,
                    everywhere,
                    self._known_offset(start, query_offset),
                    None,
                    hidden_or_added.detach().clone(),
                )
            )
        # No kernel takes numbers and dropout together.
        written_out = bias is not None and bool(self.attn_dropout.active_p)
        if not (need_weights or self.hook.is_patched or written_out):
            return self.merge_heads(self._attend_biased(heads, cache, allowed, bias, scale)), None
        weights = applied = attention_weights_of(heads, cache.keys, allowed, scale, bias)
        if self.hook.is_patched:
            applied = self.hook.patch(weights.clone(), allowed)
        context = weighted_values(self.attn_dropout(applied), cache.values)
        return self.merge_heads(context), weights if need_weights else None

    def _attend_biased(
        self,
        heads: Float[Tensor, "batch heads queries head_dim"],
        cache: KeyValueCache,
        allowed: Bool[Tensor, "#batch #heads queries keys"],
        bias: Float[Tensor, "#batch #heads #queries keys"] | None,
        scale: float,
    ) -> Float[Tensor, "batch heads queries value_dim"]:
        """The kernel with masks; with a bias, without dropout."""
        keys, values = cache.keys, cache.values
        if bias is None:
            return masked_attention(heads, keys, values, allowed, scale, self.attn_dropout.active_p)
        # A query that sees nothing looks everywhere instead, and what it read is thrown away.
        sees_nothing = ~allowed.any(-1, keepdim=True)
        mask = _hide(bias, allowed | sees_nothing).to(heads.dtype)
        context = fused_attention(heads, keys, values, mask, scale, 0.0)
        return context.masked_fill(sees_nothing, 0.0)

    @property
    def _is_plain(self) -> bool:
        """Return True if only the masks of the call decide what is seen."""
        return self.pattern == everywhere and self.bias_k is None and not self.add_zero_attn

    def _append_learned(
        self,
        cache: KeyValueCache,
        allowed: Bool[Tensor, "#batch #heads queries keys"],
        bias: Float[Tensor, "#batch #heads #queries keys"] | None,
    ) -> tuple[
        KeyValueCache,
        Bool[Tensor, "#batch #heads queries all_keys"],
        Float[Tensor, "#batch #heads #queries all_keys"] | None,
    ]:
        """The same with the keys and values of `add_bias_kv` and `add_zero_attn`, seen by all."""
        new: list[list[Tensor]] = []
        rows = cache.keys.shape[0]
        if self.bias_k is not None and self.bias_v is not None:
            learned_vectors = (vector.expand(rows, -1, -1) for vector in (self.bias_k, self.bias_v))
            new += [[_split_heads(vector, self.num_kv_heads) for vector in learned_vectors]]
        if self.add_zero_attn:
            keys, values = cache.keys, cache.values
            new += [
                [
                    vector.new_zeros(rows, self.num_kv_heads, 1, vector.shape[-1])
                    for vector in (keys, values)
                ]
            ]
        if not new:
            return cache, allowed, bias
        keys = torch.cat([cache.keys, *(key.to(cache.keys.dtype) for key, _ in new)], dim=2)
        values = torch.cat(
            [cache.values, *(value.to(cache.values.dtype) for _, value in new)], dim=2
        )
        allowed = F.pad(allowed, (0, len(new)), value=True)
        bias = None if bias is None else F.pad(bias, (0, len(new)))
        return KeyValueCache(keys, values, None), allowed, bias

    def _batch_first(
        self, tensor: Float[Tensor, "*positions dim"], batched: bool
    ) -> Float[Tensor, "batch positions dim"]:
        if not batched:
            return tensor.unsqueeze(0)
        return tensor if self.batch_first else tensor.transpose(0, 1)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *others: Any, **more: Any
    ) -> None:
        """Also the state dict of torch's module, whose matrices of q, k and v are one."""
        parts = ("q_proj", "k_proj", "v_proj")
        for kind in ("weight", "bias"):
            joined = state_dict.get(f"{prefix}in_proj_{kind}")
            if joined is not None and len(joined) % 3 == 0:
                del state_dict[f"{prefix}in_proj_{kind}"]
                for part, values in zip(parts, joined.chunk(3), strict=True):
                    state_dict[f"{prefix}{part}.{kind}"] = values
        for part in parts:  # torch's names where the widths differ
            if (weight := state_dict.pop(f"{prefix}{part}_weight", None)) is not None:
                state_dict[f"{prefix}{part}.weight"] = weight
        super()._load_from_state_dict(state_dict, prefix, *others, **more)


# The inputs of a call: three tensors, and masks as torch defines them.


def _check_inputs(query: Any, key: Any, value: Any) -> bool:
    """Return True if there is a batch."""
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        check_tensor(name, tensor)
        if tensor.is_nested:
            raise UnsupportedError(
                f"a {name} of one length",
                "a nested tensor",
                "pad it with torch.nested.to_padded_tensor and pass key_padding_mask",
            )
    if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in (query, key, value))
        raise AttlasError(
            "query, key and value of three axes each, or of two without a batch",
            f"shapes {shapes}",
            "add the axis of the batch with unsqueeze, or remove it",
        )
    return bool(query.ndim == 3)


def _check_sizes(query: Tensor, key: Tensor, value: Tensor, dims: tuple[int, int, int]) -> None:
    """`AttlasError` where rows, positions or widths do not fit; all are (batch, positions, dim)."""
    rows, queries = query.shape[:2]
    keys = key.shape[1]
    expected = ((rows, queries, dims[0]), (rows, keys, dims[1]), (rows, keys, dims[2]))
    got = tuple(tuple(tensor.shape) for tensor in (query, key, value))
    if got != expected:
        raise AttlasError(
            "query, key and value of (batch, positions, dim) = {}, {}, {}".format(*expected),
            "{}, {}, {}".format(*got),
            "check batch_first, and the widths that the layer was made for",
        )


_SHOWN = "mask == 0 (True hides a position here, as in torch)"


@dataclass(frozen=True, slots=True)
class _Masks:
    """The masks of a call, in our sense: what may be seen, and what is added to the scores."""

    token_mask: Bool[Tensor, "batch keys"] | None = None
    allowed: Bool[Tensor, "#batch #heads queries keys"] | None = None
    bias: Float[Tensor, "#batch #heads #queries keys"] | None = None
    is_causal: bool = False

    @property
    def is_empty(self) -> bool:
        """Return True if there is nothing beside a mask of tokens."""
        return self.allowed is None and self.bias is None and not self.is_causal

    @property
    def is_only_causal(self) -> bool:
        return self.is_causal and self.allowed is None and self.bias is None

    def allow(
        self, allowed: Bool[Tensor, "#batch 1 queries keys"]
    ) -> Bool[Tensor, "#batch #heads queries keys"]:
        """What is allowed already and by these masks."""
        if self.is_causal:
            mask = causal.mask(allowed.shape[2], allowed.shape[3], 0, allowed.device)
            allowed = allowed & mask[None, None]
        return allowed if self.allowed is None else allowed & self.allowed

    @classmethod
    def read(
        cls,
        key_padding_mask: Any,
        attn_mask: Any,
        is_causal: bool,
        sizes: tuple[int, int, int, int],
        batched: bool,
    ) -> "_Masks":
        """Torch's masks, in which True hides a position and a number is added to its score."""
        rows, heads, queries, keys = sizes
        token_mask = allowed = bias = None
        if key_padding_mask is not None:
            expected: tuple[int, ...] = (rows, keys) if batched else (keys,)
            _check_mask("key_padding_mask", key_padding_mask, [expected])
            mask = key_padding_mask.reshape(rows, keys)
            if mask.dtype == torch.bool:
                token_mask = ~mask
            else:
                warn_of_truth("key_padding_mask", mask, _SHOWN)
                token_mask, bias = split_bias("key_padding_mask", mask)
                bias = bias[:, None, None, :]
        if attn_mask is not None:
            _check_mask("attn_mask", attn_mask, [(queries, keys), (rows * heads, queries, keys)])
            per_head = attn_mask.ndim == 3
            mask = attn_mask.view(rows, heads, queries, keys) if per_head else attn_mask[None, None]
            if mask.dtype == torch.bool:
                allowed = ~mask
            else:
                warn_of_truth("attn_mask", mask, _SHOWN)
                allowed, mask_bias = split_bias("attn_mask", mask)
                bias = mask_bias if bias is None else bias + mask_bias
        return cls(token_mask, allowed, bias, is_causal)


def _check_mask(name: str, mask: Any, shapes: list[tuple[int, ...]]) -> None:
    check_tensor(name, mask)
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise AttlasError(
            f"{name} of bools, True = hidden, or of numbers that are added to the scores",
            str(mask.dtype).removeprefix("torch."),
            "for a mask with 1 = a token pass mask == 0",
        )
    if tuple(mask.shape) not in shapes:
        raise AttlasError(
            f"{name} of shape {' or '.join(map(str, shapes))}",
            f"shape {tuple(mask.shape)}",
            "order the axes as the message says: keys last",
        )


def _hide(
    bias: Float[Tensor, "#batch #heads #queries keys"],
    allowed: Bool[Tensor, "#batch #heads queries keys"],
) -> Float[Tensor, "#batch #heads queries keys"]:
    return torch.where(allowed, bias, -math.inf)


def _biased(bias: bool | Collection[str]) -> frozenset[str]:
    """Which of the four maps have a bias."""
    if isinstance(bias, bool):
        return frozenset(_MAPS if bias else ())
    projections = frozenset([bias] if isinstance(bias, str) else bias)
    if projections - set(_MAPS):
        raise AttlasError(
            'bias as True, False or some of "q", "k", "v", "out"', repr(bias), "name these maps"
        )
    return projections


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
    rotary_dim = embed_dim // num_heads if head_dim is None else head_dim
    if positions is not None and positions.head_dim != rotary_dim:
        raise AttlasError(
            f"rotary positions of the head's width, {rotary_dim}",
            f"RotaryPositions({positions.head_dim})",
            f"pass RotaryPositions({rotary_dim})",
        )


def _split_heads(
    joined: Float[Tensor, "batch positions embed_dim"], num_heads: int
) -> Float[Tensor, "batch heads positions head_dim"]:
    batch, positions, embed_dim = joined.shape
    return joined.reshape(batch, positions, num_heads, embed_dim // num_heads).transpose(1, 2)

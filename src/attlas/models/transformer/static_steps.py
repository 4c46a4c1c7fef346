"""Steps of the Transformer's decoder over fixed buffers, which a CUDA graph can replay."""

import weakref
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attlas.layers import MultiheadAttention
from attlas.models.transformer.decoder import DecoderLayer, TransformerDecoder
from attlas.models.transformer.model import Transformer
from attlas.models.transformer.state import TransformerState
from attlas.ops.cache import KeyValueCache
from attlas.patterns import Causal, Everywhere, Pattern
from attlas.recording.hooks import has_hooks


class StaticDecoder:
    """Rows at positions of their own, each with a place for every key that it may read.

    A step writes the key of row r at position p_r, and looks at the positions up to p_r. It asks
    the device for no number, and allocates nothing that lasts. `begin` gives rows another source:
    what was left behind lies at later positions, which they do not see.

    Args:
        model: It is held weakly: whoever makes a step holds it.
        like: The state of some sources, whose caches tell types and widths.
        sources: How many sources there are places for.
        rows_per_source: How many neighbouring rows read one source.
        source_length: The longest source.
        target_length: The longest target, with BEGIN.
    """

    def __init__(
        self,
        model: Transformer,
        like: TransformerState,
        sources: int,
        rows_per_source: int,
        source_length: int,
        target_length: int,
    ) -> None:
        self._model = weakref.ref(model)
        self.sources, self.rows_per_source = sources, rows_per_source
        self.target_length = target_length
        rows, caches = sources * rows_per_source, like.source.layers
        self._source, self._own = (
            [
                tuple(
                    part.new_zeros(count, part.shape[1], length, part.shape[3])
                    for part in (cache.keys, cache.values)
                )
                for cache in caches
            ]
            for count, length in ((sources, source_length), (rows, target_length))
        )
        device = caches[0].keys.device
        self.token_mask = torch.zeros(sources, source_length, dtype=torch.bool, device=device)
        self.token_mask[:, 0] = True  # a place without a source looks at zeros
        self.weights_dtype = torch.promote_types(caches[0].keys.dtype, torch.float32)
        self._places = torch.arange(target_length, device=device)

    @property
    def caches(self) -> list[Tensor]:
        """The keys and values of the target so far."""
        return [buffer for own in self._own for buffer in own]

    @property
    def model(self) -> Transformer:
        """Whose decoder it is."""
        model = self._model()
        assert model is not None  # who makes a step holds it
        return model

    @staticmethod
    def check(model: object) -> bool:
        """Return True if the steps of this model can run over fixed buffers: a Transformer whose
        modules are its own, without hooks, in which every position sees itself.
        """
        return (
            type(model) is Transformer
            and not has_hooks(model.modules())
            and type(model.decoder) is TransformerDecoder
            and len(model.decoder.layers) > 0
            and all(
                type(layer) is DecoderLayer
                and layer.can_step_fast
                and _widths(layer.self_attention) == _widths(layer.cross_attention)
                for layer in model.decoder.layers
            )
        )

    def begin(
        self,
        places: Int[Tensor, " begun"],
        state: TransformerState,
        chosen: Int[Tensor, " begun"],
        token_mask: Bool[Tensor, "sources keys"],
    ) -> None:
        """Put the chosen sources of a state into these places."""
        length = token_mask.shape[1]
        for held, cache in zip(self._source, state.source.layers, strict=True):
            for buffer, given in zip(held, (cache.keys, cache.values), strict=True):
                buffer[:, :, :length].index_copy_(0, places, given.index_select(0, chosen))
        mask = torch.zeros_like(self.token_mask[:1]).expand(len(places), -1).clone()
        mask[:, :length] = token_mask.index_select(0, chosen)
        self.token_mask.index_copy_(0, places, mask)

    def reorder(self, rows: Int[Tensor, " rows"], target_length: int) -> None:
        """Let each row go on with the past of one of these, which reads the same source."""
        for buffer in self.caches:
            read = buffer[:, :, :target_length]
            read.copy_(read.index_select(0, rows))

    def step(
        self,
        tokens: Int[Tensor, " rows"],
        positions: Int[Tensor, " rows"],
        source_length: int,
        target_length: int,
        *,
        weighs: bool = False,
    ) -> tuple[Float[Tensor, "rows vocabulary"], Float[Tensor, "rows source_length"] | None]:
        """The logits behind these tokens, and with `weighs` the last layer's cross-attention, the
        mean over its heads.

        Args:
            source_length, target_length: So many positions of the buffers are read.
        """
        model = self.model
        embedded = model.target_embedding(tokens.unsqueeze(1)) * model.scale
        x = model.target_positions(embedded, positions)[:, 0]
        places = self._places[:target_length]
        layers = cast("list[DecoderLayer]", list(model.decoder.layers))
        patterns = {layer.self_attention.pattern for layer in layers}
        biases = {pattern: _bias(_allowed(pattern, positions, places)) for pattern in patterns}
        source_bias = _bias(self.token_mask[:, :source_length])
        weights = None
        for number, layer in enumerate(layers):
            attention = layer.self_attention
            y = layer.around_self_attention.enter(x)
            new = attention.project_kv(y.unsqueeze(1), key_offset=positions)
            own = self._write(number, new, positions, target_length)
            attended = attention.decode_step(y, own, positions, biases[attention.pattern])
            x = layer.around_self_attention.leave(x, attended)
            keys, values = self._source[number]
            source = KeyValueCache(keys[:, :, :source_length], values[:, :, :source_length])
            if weighs and number == len(layers) - 1:
                weights = layer.cross_attention_step_weights(x, source, source_bias)
            x = layer.feed_forward_block(layer.cross_attention_step(x, source, source_bias))
        features = x if model.decoder.norm is None else model.decoder.norm(x)
        return model.logits(features), weights

    def _write(
        self, layer: int, new: KeyValueCache, positions: Int[Tensor, " rows"], length: int
    ) -> KeyValueCache:
        """Put each row's newest position into its place; all of the layer up to `length`."""
        index = positions[:, None, None, None]
        for buffer, given in zip(self._own[layer], (new.keys, new.values), strict=True):
            buffer.scatter_(2, index.expand(given.shape), given.to(buffer.dtype))
        keys, values = (buffer[:, :, :length] for buffer in self._own[layer])
        return KeyValueCache(keys, values)


def _widths(attention: MultiheadAttention) -> tuple[int, int, int]:
    """What a position takes in a cache."""
    return attention.num_kv_heads, attention.head_dim, attention.v_proj.out_features


def _allowed(
    pattern: Pattern, positions: Int[Tensor, " rows"], places: Int[Tensor, " keys"]
) -> Bool[Tensor, "rows keys"]:
    seen = places <= positions.unsqueeze(1)
    if isinstance(pattern, Causal | Everywhere):
        return seen
    return seen & pattern(positions.unsqueeze(1), places)


def _bias(allowed: Bool[Tensor, "rows keys"]) -> Float[Tensor, "rows 1 1 keys"]:
    zeros = torch.zeros(allowed.shape, device=allowed.device)
    return zeros.masked_fill_(~allowed, -torch.inf)[:, None, None]

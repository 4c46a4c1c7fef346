"""What a head makes of a slot: its value, as it comes out of the layer."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.analysis.norms.projections import Projections, matrix_of, precise, projections_of
from attlas.errors import AttlasError
from attlas.recording.foreign.heads import heads_named


@dataclass(frozen=True, slots=True)
class ValueMap:
    """f_h(x) = (x V_h + c_h) O_h    Kobayashi et al., 2020, eq. 4.

    So the layer puts out Σ_h Σ_j α_hij f_h(x_j) + bias. Neighbouring heads share a value head
    (grouped-query attention). extra: values of slots behind those of the source, which are learnt
    (`add_bias_kv`) or zero (`add_zero_attn`).
    """

    value: Float[Tensor, "value_heads source_width value_width"]
    value_bias: Float[Tensor, "value_heads value_width"] | None
    output: Float[Tensor, "heads value_width width"]
    bias: Float[Tensor, " width"] | None = None
    extra: Float[Tensor, "value_heads more value_width"] | None = None

    @property
    def added(self) -> int:
        """How many slots there are behind those of the source."""
        return 0 if self.extra is None else self.extra.shape[1]

    def values(
        self, source: Float[Tensor, "batch slots source_width"]
    ) -> Float[Tensor, "batch value_heads all_slots value_width"]:
        """x V_h + c_h of each slot, and what is extra. Errors: `AttlasError` for another width."""
        if source.shape[-1] != self.value.shape[1]:
            raise AttlasError(
                f"what the values are made of, of width {self.value.shape[1]}",
                f"width {source.shape[-1]}",
                "take it from `hearing_sources`",
            )
        values = source.detach().to(self.value).unsqueeze(1) @ self.value
        if self.value_bias is not None:
            values = values + self.value_bias.unsqueeze(1)
        if self.extra is None:
            return values
        return torch.cat((values, self.extra.expand(len(values), -1, -1, -1)), 2)

    def carried(
        self, values: Float[Tensor, "batch value_heads slots value_width"]
    ) -> Float[Tensor, "batch heads slots width"]:
        """What each head makes of these values: f_h(x_j), O(heads × slots × width) memory."""
        shared = self.output.shape[0] // self.value.shape[0]
        return values.repeat_interleave(shared, 1) @ self.output

    def __call__(
        self, source: Float[Tensor, "batch slots source_width"]
    ) -> Float[Tensor, "batch heads all_slots width"]:
        """f_h(x_j) of every head and slot."""
        return self.carried(self.values(source))


def value_map(model: nn.Module, layer: str, heads: int) -> ValueMap:
    """The f of one attention layer of a model, by its path in a trace.

    heads: how many the layer has, which `trace[layer].shape[1]` says. Known are attlas's
    `MultiHead`, PyTorch's `nn.MultiheadAttention`, and modules that name their projections as those
    of Hugging Face do, see `Projections`. In float32 or better, out of any graph.

    Errors: `AttlasError` where the projections cannot be found, do more than project, or do not
    fit so many heads; where the layer says that it has another number of them.
    """
    found = projections_of(model, layer)
    named = heads_named(model.get_submodule(layer))
    if named is not None and named != heads:
        raise AttlasError(
            f"the {named} heads that layer {layer!r} has",
            f"{heads}",
            "observe all heads of the layer, and give trace[layer].shape[1]",
        )
    if isinstance(found, nn.MultiheadAttention):
        return _of_torch(found)
    output, bias = matrix_of(found.output)
    value, value_bias = matrix_of(found.value)
    width, rest = divmod(output.shape[0], heads) if heads > 0 else (0, 1)
    columns = None if rest else found.columns(value.shape[1], heads, width)
    if columns is None or len(columns) % width or heads % (len(columns) // width):
        raise _unfit(found, layer, heads)
    columns = columns.to(value.device)
    value_bias = None if value_bias is None else value_bias[columns]
    return _apart(value[:, columns], value_bias, output, bias, width)


def _of_torch(module: nn.MultiheadAttention) -> ValueMap:
    whole, heads = module.embed_dim, module.num_heads
    own, width = module.v_proj_weight, whole // heads
    weight = module.in_proj_weight[2 * whole :] if own is None else own
    bias = None if module.in_proj_bias is None else precise(module.in_proj_bias[2 * whole :])
    output, output_bias = matrix_of(module.out_proj)
    made = _apart(precise(weight).T, bias, output, output_bias, width)
    extra = []
    if module.bias_v is not None:
        extra.append(precise(module.bias_v).reshape(heads, 1, width))
    if module.add_zero_attn:
        extra.append(output.new_zeros(heads, 1, width))
    return replace(made, extra=torch.cat(extra, 1)) if extra else made


def _apart(
    value: Float[Tensor, "source_width all_values"],
    value_bias: Float[Tensor, " all_values"] | None,
    output: Float[Tensor, "all_heads width"],
    bias: Float[Tensor, " width"] | None,
    width: int,
) -> ValueMap:
    """The maps of each head, of which each is so wide."""
    return ValueMap(
        value.reshape(len(value), -1, width).transpose(0, 1),
        None if value_bias is None else value_bias.reshape(-1, width),
        output.reshape(-1, width, output.shape[1]),
        bias,
    )


def _unfit(found: Projections, layer: str, heads: int) -> AttlasError:
    made, taken = matrix_of(found.value)[0].shape[1], matrix_of(found.output)[0].shape[0]
    return AttlasError(
        f"projections of the values of {heads} heads in layer {layer!r}",
        f"{made} numbers made of a slot, of which {taken} come out of all heads",
        "give the number of heads that trace[layer].shape[1] says, of a trace of all heads",
    )

"""Find the value projection and the output projection of an attention layer."""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attlas.errors import AttlasError, UnsupportedError
from attlas.recording.torch_functions.heads import heads_named

Layout = Literal["values", "blocks", "last", "heads"]

_LAYOUTS: tuple[tuple[str, str, Layout], ...] = (
    ("v_proj", "o_proj", "values"),  # Llama, Mistral, Gemma, Qwen, ViT
    ("v_proj", "out_proj", "values"),  # attlas, BART, Marian, M2M100, OPT, CLIP, Whisper
    ("v_proj", "dense", "values"),  # Phi
    ("v_lin", "out_lin", "values"),  # DistilBERT, XLM
    ("v", "o", "values"),  # T5, MPNet
    ("value", "dense", "values"),  # ALBERT
    ("value", "^output.dense", "values"),  # BERT, RoBERTa, ELECTRA, ESM
    ("value_proj", "^output.dense", "values"),  # DeBERTa
    ("qkv_proj", "o_proj", "blocks"),  # Phi-3
    ("Wqkv", "out_proj", "blocks"),  # MPT
    ("Wqkv", "Wo", "blocks"),  # ModernBERT
    ("c_attn", "c_proj", "last"),  # GPT-2
    ("query_key_value", "dense", "heads"),  # GPT-NeoX, BLOOM
)
_CHANGING = (
    "clip_qkv",  # OLMo, in its configuration; MPT, DBRX
    "v_norm",  # Gemma 3n
    "o_norm",  # linear attentions
    "attn_sub_norm",  # BitNet
    "inner_attn_ln",  # Kosmos-2
    "groupnorm",  # DiffLlama
    "g_proj",  # Laguna, a gate
)
_QUERIES = (
    *(("q_proj", "k_proj"), ("q_lin", "k_lin")),
    *(("q", "k"), ("query", "key"), ("query_proj", "key_proj")),
)


@dataclass(frozen=True, slots=True)
class Projections:
    """The two linear maps around the weights of an attention, and how the first is laid out.

    Supported are modules with one of these pairs of attributes (^ = of the parent module): v_proj
    with o_proj, out_proj or dense; v_lin, out_lin; v, o; value with dense or ^output.dense;
    value_proj, ^output.dense; and, where queries, keys and values are made at once: qkv_proj,
    o_proj; Wqkv with out_proj or Wo; c_attn, c_proj; query_key_value, dense.

    Args:
        layout: "values" = these alone; "blocks" = all queries, all keys, all values; "last" =
            values last, and as many as heads; "heads" = query, key and value of each head in turn.
    """

    value: nn.Module
    output: nn.Module
    layout: Layout

    def columns(self, total: int, heads: int, width: int) -> Int[Tensor, " values"] | None:
        """Which of the `total` outputs of `value` are values, for this head width; None = none."""
        all_columns = torch.arange(total)
        match self.layout:
            case "values":
                return all_columns
            case "last":
                is_joint = total in (2 * heads * width, 3 * heads * width)
                return all_columns[-heads * width :] if is_joint else None
            case "heads":
                is_joint = total == 3 * heads * width
                return all_columns.reshape(heads, 3, width)[:, 2].flatten() if is_joint else None
            case "blocks":
                kv_dim = total - heads * width  # keys and values
                fits = kv_dim > 0 and kv_dim % (2 * width) == 0
                return all_columns[-kv_dim // 2 :] if fits else None


def projections_of(model: nn.Module, layer: str) -> Projections | nn.MultiheadAttention:
    """The projections of the layer at this path; PyTorch's own layer is handled apart.

    Raises:
        AttlasError: For a path of no module, and if the projections cannot be found or do more than
            project.
    """
    try:
        module = model.get_submodule(layer)
    except AttributeError:
        raise AttlasError(
            f"the path of a module of {type(model).__name__}",
            repr(layer),
            "name a layer of a trace of this very model",
        ) from None
    projections = find_projections(model, layer)
    if projections is None:
        names = sorted({name for name, _, _ in _LAYOUTS})
        raise UnsupportedError(
            f"a value projection among {names} with its output projection, or "
            "nn.MultiheadAttention",
            f"{type(module).__name__} at {layer!r}",
            "make a ValueMap of your own from the weights of this layer",
        )
    changing = _changing(module, projections)
    if changing is not None:
        raise UnsupportedError(
            "values that are projected and nothing else",
            f"{type(module).__name__} at {layer!r}, which has {changing}",
            "no linear map says what such a layer makes of a key: ask for weights, not for norms",
        )
    return projections


def find_projections(model: nn.Module, layer: str) -> Projections | nn.MultiheadAttention | None:
    """The same, or None where there are none that we know."""
    module, parent = model.get_submodule(layer), model.get_submodule(layer.rpartition(".")[0])
    if isinstance(module, nn.MultiheadAttention):
        return module
    for value_name, output_name, layout in _LAYOUTS:
        value = _linear(module, value_name)
        owner = parent if output_name.startswith("^") and parent is not module else module
        output = _linear(owner, output_name.removeprefix("^"))
        if value is None or output is None or (layout == "last") != _is_transposed(value):
            continue
        return Projections(value, output, layout)
    return None


def _changing(module: nn.Module, projections: Projections | nn.MultiheadAttention) -> str | None:
    """Say what a layer does besides projecting: clip, normalise or gate values or heads' outputs.

    Some keep a gate in queries that are twice as wide. Of h heads, g of them with keys of their
    own, queries, keys, values and what heads read are h a, g a, g b and h b wide: else there is
    something more.
    """
    if isinstance(projections, nn.MultiheadAttention):
        return None
    for owner in (module, getattr(module, "config", None)):
        for name in _CHANGING:
            if getattr(owner, name, None) is not None:
                return name
    for name, _ in (*module.named_children(), *module.named_parameters(recurse=False)):
        if "gate" in name.split("_"):
            return name
    value, output_dim = _size(projections.value)[1], _size(projections.output)[0]
    for query_name, key_name in _QUERIES if projections.layout == "values" else ():
        query, key = _linear(module, query_name), _linear(module, key_name)
        if query is None or key is None:
            continue
        if _size(query)[1] * value != _size(key)[1] * output_dim:
            return f"more than queries in {query_name}"
    return None


def _size(linear: nn.Module) -> tuple[int, int]:
    """How many inputs and outputs it has."""
    rows, columns = linear.get_parameter("weight").shape
    return (rows, columns) if _is_transposed(linear) else (columns, rows)


def matrix_of(
    linear: nn.Module,
) -> tuple[Float[Tensor, "inputs outputs"], Float[Tensor, " outputs"] | None]:
    """W and b of x W + b, in float32 or better, out of any graph."""
    weight, bias = linear.get_parameter("weight"), getattr(linear, "bias", None)
    matrix = precise(weight if _is_transposed(linear) else weight.T)
    return matrix, None if bias is None else precise(bias)


def precise(numbers: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The same numbers out of any graph, in float32 or better."""
    return numbers.detach().to(torch.promote_types(numbers.dtype, torch.float32))


def _linear(owner: nn.Module, path: str) -> nn.Module | None:
    """The linear map at this path; None where there is something else or nothing."""
    try:
        module = owner.get_submodule(path)
    except AttributeError:
        return None
    weight = getattr(module, "weight", None)
    numbers = isinstance(weight, Tensor) and weight.is_floating_point()
    return module if numbers and (isinstance(module, nn.Linear) or _is_transposed(module)) else None


def _is_transposed(linear: nn.Module) -> bool:
    """Return True if it is GPT-2's kind of a linear map, whose weight has its inputs first."""
    return type(linear).__name__ == "Conv1D" and hasattr(linear, "nf")


# The contribution of a key through a head: its value after the output projection.


@dataclass(frozen=True, slots=True)
class ValueMap:
    """f_h(x) = (x V_h + c_h) O_h Kobayashi et al., 2020, eq. 4.

    So the layer puts out Σ_h Σ_j α_hij f_h(x_j) + bias. Neighbouring heads share a value head
    (grouped-query attention).

    Args:
        extra: Values of keys behind those of the source, which are learnt (`add_bias_kv`) or zero
            (`add_zero_attn`).
    """

    value: Float[Tensor, "value_heads key_dim value_dim"]
    value_bias: Float[Tensor, "value_heads value_dim"] | None
    output: Float[Tensor, "heads value_dim embed_dim"]
    bias: Float[Tensor, " embed_dim"] | None = None
    extra: Float[Tensor, "value_heads more value_dim"] | None = None

    @property
    def added(self) -> int:
        """How many keys there are behind those of the source."""
        return 0 if self.extra is None else self.extra.shape[1]

    def values(
        self, source: Float[Tensor, "batch keys key_dim"]
    ) -> Float[Tensor, "batch value_heads all_keys value_dim"]:
        """x V_h + c_h of each key, and what is extra.

        Raises:
            AttlasError: For another width.
        """
        if source.shape[-1] != self.value.shape[1]:
            raise AttlasError(
                f"what the values are made of, of width {self.value.shape[1]}",
                f"width {source.shape[-1]}",
                "take it from `record_value_inputs`",
            )
        values = source.detach().to(self.value).unsqueeze(1) @ self.value
        if self.value_bias is not None:
            values = values + self.value_bias.unsqueeze(1)
        if self.extra is None:
            return values
        return torch.cat((values, self.extra.expand(len(values), -1, -1, -1)), 2)

    def carried(
        self, values: Float[Tensor, "batch value_heads keys value_dim"]
    ) -> Float[Tensor, "batch heads keys embed_dim"]:
        """What each head makes of these values: f_h(x_j), O(heads × keys × width) memory."""
        shared = self.output.shape[0] // self.value.shape[0]
        return values.repeat_interleave(shared, 1) @ self.output

    def __call__(
        self, source: Float[Tensor, "batch keys key_dim"]
    ) -> Float[Tensor, "batch heads all_keys embed_dim"]:
        """f_h(x_j) of every head and key."""
        return self.carried(self.values(source))


def value_map(model: nn.Module, layer: str, heads: int) -> ValueMap:
    """The f of one attention layer of a model, by its path in a trace.

    Args:
        heads: How many heads the layer has, `trace[layer].shape[1]`. Supported are attlas's and
            PyTorch's `MultiheadAttention`, and modules whose projections have the names of Hugging
            Face's, see `Projections`. Results are detached, in float32 or better.

    Raises:
        AttlasError: If the projections cannot be found, do more than project, or do not fit the
            number of heads.
    """
    projections = projections_of(model, layer)
    num_heads = heads_named(model.get_submodule(layer))
    if num_heads is not None and num_heads != heads:
        raise AttlasError(
            f"the {num_heads} heads that layer {layer!r} has",
            f"{heads}",
            "observe all heads of the layer, and give trace[layer].shape[1]",
        )
    if isinstance(projections, nn.MultiheadAttention):
        return _of_torch(projections)
    output, bias = matrix_of(projections.output)
    value, value_bias = matrix_of(projections.value)
    width, remainder = divmod(output.shape[0], heads) if heads > 0 else (0, 1)
    columns = None if remainder else projections.columns(value.shape[1], heads, width)
    if columns is None or len(columns) % width or heads % (len(columns) // width):
        raise _unsupported(projections, layer, heads)
    columns = columns.to(value.device)
    value_bias = None if value_bias is None else value_bias[columns]
    return _split_heads(value[:, columns], value_bias, output, bias, width)


def _of_torch(module: nn.MultiheadAttention) -> ValueMap:
    embed_dim, heads = module.embed_dim, module.num_heads
    value_weight, width = module.v_proj_weight, embed_dim // heads
    weight = module.in_proj_weight[2 * embed_dim :] if value_weight is None else value_weight
    bias = None if module.in_proj_bias is None else precise(module.in_proj_bias[2 * embed_dim :])
    output, output_bias = matrix_of(module.out_proj)
    value_map_ = _split_heads(precise(weight).T, bias, output, output_bias, width)
    extra = []
    if module.bias_v is not None:
        extra.append(precise(module.bias_v).reshape(heads, 1, width))
    if module.add_zero_attn:
        extra.append(output.new_zeros(heads, 1, width))
    return replace(value_map_, extra=torch.cat(extra, 1)) if extra else value_map_


def _split_heads(
    value: Float[Tensor, "key_dim all_values"],
    value_bias: Float[Tensor, " all_values"] | None,
    output: Float[Tensor, "all_heads embed_dim"],
    bias: Float[Tensor, " embed_dim"] | None,
    width: int,
) -> ValueMap:
    """The maps of each head, of which each is so wide."""
    return ValueMap(
        value.reshape(len(value), -1, width).transpose(0, 1),
        None if value_bias is None else value_bias.reshape(-1, width),
        output.reshape(-1, width, output.shape[1]),
        bias,
    )


def _unsupported(projections: Projections, layer: str, heads: int) -> AttlasError:
    value_dim, output_dim = (
        matrix_of(projections.value)[0].shape[1],
        matrix_of(projections.output)[0].shape[0],
    )
    return UnsupportedError(
        f"projections of the values of {heads} heads in layer {layer!r}",
        f"{value_dim} numbers made of a key, of which {output_dim} come out of all heads",
        "give the number of heads that trace[layer].shape[1] says, of a trace of all heads",
    )

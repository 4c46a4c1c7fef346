"""`attn_implementation="attlas"`: a model of transformers with a fused kernel and its weights.

    attlas.register_attention_interface()
    model = AutoModel.from_pretrained(name, attn_implementation="attlas")
    outputs = model(**inputs, output_attentions=True)
    outputs.attentions                                  # as with "eager"
    outputs.last_hidden_state                           # as with "sdpa", by PyTorch's fused kernel

softmax(cap(scaling · q kᵀ) + bias) v over what the mask shows. The output is that of transformers'
own "sdpa". The weights are computed from the same queries and keys, and only where a caller asks
for them. Tools that read `outputs.attentions` therefore work without "eager".
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attlas.errors import UnsupportedError
from attlas.recording.torch_functions.transformers import InterfaceCall

NAME = "attlas"
_KEYS_OF_ATTENTIONS = "attentions"  # how each key of transformers' collector for weights ends
_in_every_call: ContextVar[bool] = ContextVar("attention weights in every call", default=False)


def register_attention_interface() -> str:
    """Register the implementation "attlas" with transformers, and return this name.

    Call it before the model is loaded, or `model.set_attn_implementation("attlas")` after it.
    Models that do not call transformers' attention interface keep their own code.

    | | what it is |
    |---|---|
    | output | that of "sdpa"; with a softcap or with sinks, the weights times the values |
    | weights | before dropout; 0 where a mask hides the key, and for a query that sees no key |
    | `output_attentions=True` | of the call; a configuration may have it with "eager" alone |

    Raises:
        AttlasError: If transformers is missing, or older than 5.

    References:
        The attention interface of transformers: `transformers.AttentionInterface`.
    """
    try:
        # The newer of the two modules came with version 5, whose models give the weights of other
        # implementations than "eager".
        from transformers import AttentionInterface
        from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
        from transformers.utils import output_capturing  # noqa: F401
    except ImportError:
        raise UnsupportedError(
            "transformers 5 or newer", _installed(), "run: pip install 'transformers>=5'"
        ) from None
    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    return NAME


@contextmanager
def attention_weights_in_every_call() -> Iterator[None]:
    """Return the weights of "attlas" in every call, also where no caller asks for them.

    For tools that read the output of each layer by a hook, and do not pass
    `output_attentions=True`, such as the ObservedAttentionPress of kvpress:

        with attlas.attention_weights_in_every_call(), press(model):
            model(**inputs)
    """
    token = _in_every_call.set(True)
    try:
        yield
    finally:
        _in_every_call.reset(token)


def _installed() -> str:
    try:
        return f"transformers {version('transformers')}"
    except PackageNotFoundError:
        return "an installation without it"


def attention_forward(
    module: nn.Module,
    query: Float[Tensor, "batch heads queries head_dim"],
    key: Float[Tensor, "batch kv_heads keys head_dim"],
    value: Float[Tensor, "batch kv_heads keys value_dim"],
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[
    Float[Tensor, "batch queries heads value_dim"],
    Float[Tensor, "batch heads queries keys"] | None,
]:
    """The function that transformers calls for each attention.

    Returns:
        The output, and the weights if the caller asks for them.

    Raises:
        AttlasError: For paged caches, of which attlas does not compute weights.
    """
    explicit = kwargs.get("softcap") is not None or kwargs.get("s_aux") is not None
    with_weights = _asks_for_weights(module, kwargs)
    if explicit:
        weights = _weights(module, query, key, value, attention_mask, scaling, is_causal, kwargs)
        repeats = weights.shape[1] // value.shape[1]
        dropped = F.dropout(weights, dropout) if dropout else weights
        output = dropped @ value.repeat_interleave(repeats, 1)
        return output.transpose(1, 2).contiguous(), weights if with_weights else None
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    kwargs.pop("output_attentions", None)  # "sdpa" would warn that it has none
    output, _ = sdpa_attention_forward(
        module, query, key, value, attention_mask,
        dropout=dropout, scaling=scaling, is_causal=is_causal, **kwargs,
    )  # fmt: skip
    if not with_weights:
        return output, None
    with torch._C.DisableTorchFunction():  # `attlas.observe` has read the kernel's call already
        weights = _weights(module, query, key, value, attention_mask, scaling, is_causal, kwargs)
    return output, weights


def _weights(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float | None,
    is_causal: bool | None,
    kwargs: Mapping[str, Any],
) -> Float[Tensor, "batch heads queries keys"]:
    """softmax([scores; sink]) without its last column, in the type of the queries.

    As in "sdpa", a causal module without a mask looks back from the first key on.
    """
    sinks = kwargs.get("s_aux")
    # As "sdpa": a module is causal that does not say what it is, and windows and packed texts stand
    # in the mask.
    rule = getattr(module, "is_causal", True) if is_causal is None else is_causal
    arguments: dict[str, Any] = {"scaling": scaling, "is_causal": rule}
    arguments |= {name: kwargs.get(name) for name in ("softcap", "position_bias", "cache")}
    num_queries, num_keys = query.shape[2], key.shape[2]
    if rule and mask is None and num_queries > 1:
        mask = torch.ones(num_queries, num_keys, dtype=torch.bool, device=query.device).tril()
        mask = mask.view(1, 1, num_queries, num_keys)
    call = InterfaceCall.of(module, query, key, value, mask, arguments)
    if call is None:
        raise UnsupportedError(
            "a cache of tensors, and a mask of four axes",
            "a paged cache, or another mask",
            'load the model with attn_implementation="sdpa"',
        )
    attention_map = call.attention_map()
    if sinks is None:
        return attention_map.rows(0, num_queries).to(query.dtype)
    hidden = ~attention_map.allowed_rows(0, num_queries)
    scores = attention_map.scores(0, num_queries).masked_fill(hidden, -torch.inf)
    column = sinks.to(scores.dtype).reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    return torch.cat([scores, column], -1).softmax(-1)[..., :-1].to(query.dtype)


def _asks_for_weights(module: nn.Module, kwargs: Mapping[str, Any]) -> bool:
    """Return True if a caller may take the weights; also where a module is called by itself."""
    if kwargs.get("output_attentions") or getattr(
        getattr(module, "config", None), "output_attentions", False
    ):
        return True
    if not torch.compiler.is_compiling() and _in_every_call.get():
        return True
    from transformers.utils.output_capturing import _active_collector

    collected = _active_collector.get()  # type: ignore[no-untyped-call]
    return collected is None or any(name.endswith(_KEYS_OF_ATTENTIONS) for name in collected)

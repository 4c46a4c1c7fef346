"""The layers that layers_speed.py compares, each with the ways to compute the same.

All contenders of a suite compute the same from the same numbers; only "dense" of the suite "banded"
sees more, and is there to show what a window saves. "forward" keeps nothing for gradients; "forward
and backward" makes those of the inputs and of the weights.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from cases import Shape, Suite, Work, drawn
from torch import Tensor, nn

import attlas
from attlas.layers import AdditiveAttention, MultiheadAttention
from attlas.patterns import window

RADIUS = 64  # of the windows: 129 keys


# --- softmax(q kᵀ / √d) v: (batch, heads, length, width) -----------------------------------------


def softmax_by_hand(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The formula."""
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ value


def dot(attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[[Shape], Work]:
    """One way to compute it."""

    def work(shape: Shape) -> Work:
        leaves = drawn(shape, shape, shape)
        return Work(lambda: attend(*leaves), leaves)

    return work


# --- multi-head self-attention: (batch, length, width), 8 heads ----------------------------------


def multihead(shape: Shape) -> tuple[MultiheadAttention, Tensor]:
    """The layer whose weights all contenders have, and its source."""
    (source,) = drawn(shape)
    return MultiheadAttention(shape[-1], 8).eval(), source


def ours(shape: Shape) -> Work:
    """`MultiheadAttention`."""
    layer, source = multihead(shape)
    return Work(
        lambda: layer.attend(source, layer.project_kv(source)), [source, *layer.parameters()]
    )


def ours_with_weights(shape: Shape) -> Work:
    """`MultiheadAttention`, and the weights of each head."""
    layer, source = multihead(shape)

    def run() -> Tensor:
        memory = layer.project_kv(source)
        layer.attention_weights(source, memory)
        context: Tensor = layer.attend(source, memory)
        return context

    return Work(run, [source, *layer.parameters()])


def multihead_by_formula(shape: Shape) -> Work:
    """The layer with its weights written out."""
    layer, source = multihead(shape)
    return Work(lambda: layer.forward_reference(source, layer.project_kv(source)), [source])


def of_torch(*, weights: bool) -> Callable[[Shape], Work]:
    """`nn.MultiheadAttention` with the same weights."""

    def work(shape: Shape) -> Work:
        layer, source = multihead(shape)
        theirs = nn.MultiheadAttention(shape[-1], 8, batch_first=True).eval()
        linears = (layer.q_proj, layer.k_proj, layer.v_proj)
        with torch.no_grad():
            theirs.in_proj_weight.copy_(torch.cat([linear.weight for linear in linears]))
            theirs.in_proj_bias.copy_(torch.cat([linear.bias for linear in linears]))
            theirs.out_proj.load_state_dict(layer.out_proj.state_dict())

        def run() -> Tensor:
            context, _ = theirs(
                source, source, source, need_weights=weights, average_attn_weights=False
            )
            found: Tensor = context
            return found

        return Work(run, [source, *theirs.parameters()])

    return work


# --- additive attention: (batch, queries, keys), all widths 256 ---------------------------------


def additive(*, by_hand: bool) -> Callable[[Shape], Work]:
    """`Additive`, or as the formula is usually written down: one tensor of every pair."""

    def work(shape: Shape) -> Work:
        batch, queries, keys = shape
        query, source = drawn((batch, queries, 256), (batch, keys, 256))
        layer = AdditiveAttention(256, 256, 256).eval()

        def formula() -> Tensor:
            pairs = layer.q_proj(query).unsqueeze(2) + layer.k_proj(source).unsqueeze(1)
            scores = layer.score_proj(torch.tanh(pairs)).squeeze(-1)
            return torch.softmax(scores, dim=-1) @ source

        run = formula if by_hand else lambda: layer.attend(query, layer.project_kv(source))
        return Work(run, [query, source, *layer.parameters()])

    return work


# --- a window, as the length grows: (batch, heads, length, width) --------------------------------


def masked(shape: Shape) -> Work:
    """The fused kernel of torch, with the window as a mask."""
    leaves = drawn(shape, shape, shape)
    places = torch.arange(shape[2])
    seen = (places.unsqueeze(1) - places).abs() <= RADIUS
    return Work(lambda: F.scaled_dot_product_attention(*leaves, attn_mask=seen), leaves)


def banded(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Ours."""
    return attlas.scaled_dot_product_attention(query, key, value, pattern=window(RADIUS))


SUITES = {
    "dot": Suite(
        "batch × heads × length × width",
        {
            "attlas.scaled_dot_product_attention": dot(attlas.scaled_dot_product_attention),
            "F.scaled_dot_product_attention": dot(F.scaled_dot_product_attention),
            "softmax(q kᵀ) v by hand": dot(softmax_by_hand),
        },
        dot(softmax_by_hand),
        quick=((64, 8, 32, 64), (8, 8, 512, 64)),
        more=((1, 8, 2048, 64),),
        memory=((1, 8, 2048, 64),),
    ),
    "multihead": Suite(
        "batch × length × width",
        {
            "MultiheadAttention": ours,
            "nn.MultiheadAttention, need_weights=False": of_torch(weights=False),
            "MultiheadAttention, with weigh": ours_with_weights,
            "nn.MultiheadAttention, need_weights=True": of_torch(weights=True),
        },
        multihead_by_formula,
        quick=((64, 32, 512), (8, 256, 512)),
        more=((2, 1024, 512),),
    ),
    "additive": Suite(
        "batch × queries × keys",
        {
            "Additive": additive(by_hand=False),
            "v · tanh(W q + U k) by hand": additive(by_hand=True),
        },
        additive(by_hand=True),
        quick=((64, 32, 32), (16, 128, 128)),
        more=((64, 1, 32), (4, 512, 512)),
        memory=((16, 128, 128), (4, 512, 512)),
    ),
    "banded": Suite(
        "batch × heads × length × width",
        {
            f"attlas.scaled_dot_product_attention, window({RADIUS})": dot(banded),
            "F.scaled_dot_product_attention, mask": masked,
            "F.scaled_dot_product_attention, dense": dot(F.scaled_dot_product_attention),
        },
        masked,
        quick=((1, 4, 512, 64), (1, 4, 2048, 64), (1, 4, 8192, 64)),
        more=((1, 4, 1024, 64), (1, 4, 4096, 64), (1, 4, 16384, 64)),
        memory=((1, 4, 8192, 64), (1, 4, 16384, 64)),
        others=("F.scaled_dot_product_attention, dense",),
    ),
}  # fmt: skip

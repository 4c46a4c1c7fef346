"""`with intervene(model, change):` — run a model with other attention weights."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.recording.hooks import (
    Allowed,
    Listener,
    WeightPatch,
    Weights,
    attention_hooks,
    check_module,
    listening,
    modules_of,
)
from attlas.recording.observe import WithBlock, check_not_compiled
from attlas.recording.torch_functions.mode import tracking_attention
from attlas.recording.torch_functions.tensors import unreadable
from attlas.recording.trace import is_integer


def intervene(model: nn.Module, change: WeightPatch) -> WithBlock[None]:
    """Replace attention weights for the length of the block, in this thread.

    `change(weights, allowed, layer) → weights` gets the weights before dropout, of shape (batch,
    heads, queries, keys), which keys each query may see, and the layer's path. What it returns is
    used as it is, negative weights too. Each mechanism runs in its explicit form instead of its
    fused kernel. Layers are those that `observe` records, with the same paths: of attlas, PyTorch,
    Hugging Face, or your own.

    Raises:
        AttlasError: For anything but a function; for new weights of another shape or device, or
            with NaN or infinity; for a compiled model; and if nothing was replaced, unless the
            block raised first.
    """
    check_module(model)
    check_not_compiled(model)
    _check_change(change)
    return WithBlock("with attlas.intervene(model, change):", _intervening(model, change))


def _check_change(change: object) -> None:
    expected = "a function of (weights, allowed, layer) that returns new weights"
    if not callable(change):
        raise AttlasError(
            expected,
            f"a {type(change).__name__}",
            "pass such as attlas.recording.uniform, or without(0)",
        )
    name = getattr(change, "__name__", type(change).__name__)
    for maker, example in ((without, "without(0)"), (permuted, "permuted(seed=1)")):
        if change is maker:
            raise AttlasError(expected, f"{name}, which makes one", f"call it, as in {example}")
    try:
        signature = inspect.signature(change)
    except (TypeError, ValueError):
        return  # of a function in C it is unknown
    try:
        signature.bind("weights", "allowed", "layer")
    except TypeError:
        raise AttlasError(
            expected,
            f"{name}{signature}",
            "write it as `def change(weights, allowed, layer): return weights`",
        ) from None


@contextmanager
def _intervening(model: nn.Module, change: WeightPatch) -> Iterator[None]:
    names, modules = attention_hooks(model), modules_of(model)
    called = False

    def checked(weights: Weights, allowed: Allowed, layer: str) -> Weights:
        nonlocal called
        called = True
        were = weights.isfinite()  # before they are changed in their place, perhaps
        new = change(weights, allowed, layer)
        if not isinstance(new, Tensor):
            raise AttlasError(
                f"new weights for layer {layer!r}, a tensor",
                f"a {type(new).__name__}",
                "return them from the function: (weights, allowed, layer) → weights",
            )
        if new.shape != weights.shape:
            raise AttlasError(
                f"new weights of shape {tuple(weights.shape)} for layer {layer!r}",
                f"shape {tuple(new.shape)}",
                "return one weight for each one received",
            )
        if new.is_complex() or new.device != weights.device:
            raise AttlasError(
                f"new weights of real numbers on {weights.device} for layer {layer!r}",
                f"{str(new.dtype).removeprefix('torch.')} on {new.device}",
                "return what was received, changed",
            )
        new = new.to(weights.dtype)  # which may hold smaller numbers
        broken = were & ~new.isfinite()  # what a model itself makes of a row may be no number
        if unreadable(broken) is None and bool(broken.any()):
            count = int(broken.sum())
            raise AttlasError(
                f"new weights that are numbers for layer {layer!r}",
                f"NaN or infinity, {count} of {new.numel()} as "
                f"{str(new.dtype).removeprefix('torch.')}",
                "look for a division by 0, such as the sum of a row that sees nothing; negative "
                "weights, and rows that sum to another number than 1, are used as they are",
            )
        return new

    with listening(Listener(names, patch=checked, modules=modules)), tracking_attention(model):
        yield
    if not called:
        raise AttlasError(
            "at least one attention call to intervene in, inside the block",
            f"none of {type(model).__name__}",
            "call this model inside the block, in this thread; `observe` says why a "
            "model was not recorded",
        )


def uniform(
    weights: Weights | None = None, allowed: Allowed | None = None, layer: str = ""
) -> Weights:
    """1 / n on each of the n keys that the query may see.

    Raises:
        AttlasError: If it is called instead of passed.
    """
    if weights is None or allowed is None:
        raise AttlasError(
            "the function `uniform` itself", "a call of it", "write intervene(model, uniform)"
        )
    allowed = allowed.expand_as(weights).to(weights.dtype)
    return allowed / allowed.sum(-1, keepdim=True).clamp(min=1.0)


def permuted(seed: int) -> WeightPatch:
    """Each query's weights shuffled among the keys it may see.

    Jain & Wallace, Attention is not Explanation, 2019, section 4.2.1.
    """

    def change(weights: Weights, allowed: Allowed, layer: str) -> Weights:
        generator = torch.Generator("cpu").manual_seed(seed)
        draw = torch.rand(weights.shape, generator=generator, device="cpu").to(weights.device)
        # Two orders of the seen keys, one by position and one by chance; hidden keys come last
        # in both and keep their zeros.
        hidden = ~allowed.expand_as(weights)
        position = torch.arange(weights.shape[-1], device=weights.device).expand_as(weights)
        num_keys = position.masked_fill(hidden, weights.shape[-1]).argsort(dim=-1, stable=True)
        others = draw.masked_fill(hidden, 2.0).argsort(dim=-1, stable=True)
        return torch.empty_like(weights).scatter(-1, num_keys, weights.gather(-1, others))

    return change


def without(*heads: int) -> WeightPatch:
    """Set the weights of these heads to zero, so that they read zeros.

    Raises:
        AttlasError: At once for anything but integers; in the block for a head that a layer does
            not have.
    """
    if not all(map(is_integer, heads)):
        raise AttlasError(
            "heads by number, as whole numbers",
            f"without({', '.join(map(repr, heads)):.80})",
            "count them from 0, such as without(0, 3)",
        )

    def change(weights: Weights, allowed: Allowed, layer: str) -> Weights:
        invalid = [head for head in heads if not 0 <= head < weights.shape[1]]
        if invalid:
            raise AttlasError(
                f"heads from 0 to {weights.shape[1] - 1} in layer {layer!r}",
                str(invalid),
                "name heads that the layer has",
            )
        factors = torch.ones(weights.shape[1], dtype=weights.dtype, device=weights.device)
        factors[list(heads)] = 0.0
        return weights * factors[:, None, None]

    return change

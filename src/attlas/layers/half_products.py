"""Products of bfloat16 between numbers of float32."""

import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class _Asked(threading.local):
    """What holds in this thread; kept: weights that are rounded already, by their ids, each with
    itself, which keeps its id, and its version."""

    half = False
    kept: dict[int, tuple[Tensor, int, Tensor]] | None = None


_asked = _Asked()


@contextmanager
def half_products(wanted: bool = True) -> Iterator[None]:
    """Within the block, in this thread, `linear` on a CPU multiplies in bfloat16, or again does not
    where that is not wanted.

    What goes in and what comes out is float32, and so is all else: where autocast keeps activations
    in bfloat16, their sums and norms have eight bits too, and a CPU is slower at them. Where a
    forward pass is computed anew on the way back (`torch.utils.checkpoint`), its `context_fn` has
    to say so again.

    Where no gradient is wanted, a parameter is rounded once in a block, as a search multiplies by
    it at every step: until the block ends, that takes half of the memory of all of them, in each
    thread.
    """
    before = _asked.half, _asked.kept
    _asked.half, _asked.kept = wanted, {}
    try:
        yield
    finally:
        _asked.half, _asked.kept = before


def halved() -> bool:
    """Whether `half_products` is under way in this thread."""
    return _asked.half


@cache
def halves_time() -> bool | None:
    """Whether this processor has instructions for products of bfloat16; None where torch cannot
    tell, as of those that are not x86, or does not any more, as these names are its own."""
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    asked = [getattr(torch.cpu, name) for name in names if hasattr(torch.cpu, name)]
    if not asked or platform.machine().lower() not in ("x86_64", "amd64"):
        return None
    return any(one() for one in asked)


def half_product(
    x: Float[Tensor, "*rows inputs"],
    weight: Float[Tensor, "outputs inputs"],
    bias: Float[Tensor, " outputs"] | None,
) -> Float[Tensor, "*rows outputs"]:
    """y = x Wᵀ + b, each of x, W and b rounded to eight bits, summed in float32, and y rounded.

    Its gradients are products of the same kind.
    """
    added = None if bias is None else _rounded(bias)
    return F.linear(x.bfloat16(), _rounded(weight), added).to(x.dtype)


def _rounded(tensor: Tensor) -> Tensor:
    """To bfloat16; a parameter that is asked for again is not rounded anew."""
    kept = _asked.kept
    lasts = isinstance(tensor, nn.Parameter) and not tensor.is_inference()  # and tells of changes
    differentiated = torch.is_grad_enabled() and tensor.requires_grad
    if kept is None or not lasts or differentiated or torch.compiler.is_compiling():
        return tensor.bfloat16()
    _, version, rounded = kept.get(id(tensor), (tensor, -1, tensor))
    shut = rounded.is_inference() and not torch.is_inference_mode_enabled()
    if shut or version != tensor._version:  # it was changed since, or is new here
        rounded = tensor.bfloat16()
        kept[id(tensor)] = (tensor, tensor._version, rounded)
    return rounded

"""Linear maps by the fastest library on this machine, and reduced precision."""

import os
import platform
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad

from attlas._hardware import processor_maker, without_cudnn_attention
from attlas.errors import UnsupportedError

# bfloat16 products of float32 tensors.


class _ThreadState(threading.local):
    """What holds in this thread; kept: weights that are rounded already, by their ids, each with
    itself, which keeps its id, and its version."""

    half = False
    kept: dict[int, tuple[Tensor, int, Tensor]] | None = None


_thread_state = _ThreadState()


@contextmanager
def bf16_matmul(enabled: bool = True) -> Iterator[None]:
    """Within the block, in this thread, `linear` on a CPU multiplies in bfloat16, or again does not
    where that is not wanted.

    Inputs, outputs and everything else are float32. (With autocast, activations, sums and norms are
    bfloat16, which is less precise, and slower on a CPU.) If a forward pass is recomputed in the
    backward pass (`torch.utils.checkpoint`), its `context_fn` must enter this block again.

    Without gradients, a parameter is rounded once in a block, because a search multiplies by it at
    every step. Until the block ends, this takes half of the memory of all parameters, in each
    thread.
    """
    previous = _thread_state.half, _thread_state.kept
    _thread_state.half, _thread_state.kept = enabled, {}
    try:
        yield
    finally:
        _thread_state.half, _thread_state.kept = previous


def is_bf16_matmul() -> bool:
    """Return True if `bf16_matmul` is under way in this thread."""
    return _thread_state.half


@cache
def has_bf16_instructions() -> bool | None:
    """Return True if this processor has instructions for products of bfloat16; None where torch
    cannot tell, as of those that are not x86, or does not any more, as these names are its own.
    """
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    checks = [getattr(torch.cpu, name) for name in names if hasattr(torch.cpu, name)]
    if not checks or platform.machine().lower() not in ("x86_64", "amd64"):
        return None
    return any(check() for check in checks)


def bf16_linear(
    x: Float[Tensor, "*rows inputs"],
    weight: Float[Tensor, "outputs inputs"],
    bias: Float[Tensor, " outputs"] | None,
) -> Float[Tensor, "*rows outputs"]:
    """y = x Wᵀ + b, each of x, W and b rounded to eight bits, summed in float32, and y rounded.

    Its gradients are products of the same kind.
    """
    rounded_bias = None if bias is None else _rounded(bias)
    return F.linear(x.bfloat16(), _rounded(weight), rounded_bias).to(x.dtype)


def _rounded(tensor: Tensor) -> Tensor:
    """To bfloat16; a parameter that is asked for again is not rounded anew."""
    cached = _thread_state.kept
    lasts = isinstance(tensor, nn.Parameter) and not tensor.is_inference()  # and tells of changes
    differentiated = torch.is_grad_enabled() and tensor.requires_grad
    if cached is None or not lasts or differentiated or torch.compiler.is_compiling():
        return tensor.bfloat16()
    _, version, rounded = cached.get(id(tensor), (tensor, -1, tensor))
    shut = rounded.is_inference() and not torch.is_inference_mode_enabled()
    if shut or version != tensor._version:  # it was changed since, or is new here
        rounded = tensor.bfloat16()
        cached[id(tensor)] = (tensor, tensor._version, rounded)
    return rounded


# Reduced precision.


Autocast = Literal["none", "bf16", "fp16"]
NUMBERS = {"none": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def autocast(
    name: Autocast, device: torch.device, *, cached: bool = True
) -> AbstractContextManager[object]:
    """Within the block products are of bfloat16 ("bf16") or float16 ("fp16"); "none": of float32.

    The weights stay as they are. On a CPU "bf16" is `bf16_matmul`, of the linear maps alone;
    elsewhere it is torch's autocast, and on CUDA `without_cudnn_attention`.
    Micikevicius et al., Mixed Precision Training, 2018.

    Args:
        cached: Whether torch's autocast keeps rounded weights until the block ends; CUDA graphs
            must not.
    """
    if name == "bf16" and device.type == "cpu":
        return bf16_matmul()
    if name != "none" and device.type == "cuda":
        return _on_cuda(NUMBERS[name], cached)
    return torch.autocast(device.type, NUMBERS[name], enabled=name != "none")


@contextmanager
def _on_cuda(numbers: torch.dtype, cached: bool) -> Iterator[None]:
    with without_cudnn_attention, torch.autocast("cuda", numbers, cache_enabled=cached):
        yield


def gpu_has_bf16(device: torch.device) -> bool:
    """Return True if this GPU computes in bfloat16."""
    with torch.cuda.device(device):  # torch asks the current one
        return bool(torch.cuda.is_bf16_supported(False))


def check_autocast(name: Autocast, device: torch.device, setting: str) -> None:
    """Check that the device supports this precision.

    Args:
        setting: The name of the setting.

    Raises:
        UnsupportedError: If it does not.
    """
    if name == "fp16" and device.type != "cuda":
        expected, instead = f"a CUDA device for {setting} = 'fp16'", "'bf16' or 'none'"
    elif name == "bf16" and device.type == "cuda" and not gpu_has_bf16(device):
        expected, instead = f"a device with bfloat16 for {setting} = 'bf16'", "'fp16' or 'none'"
    else:
        return
    raise UnsupportedError(expected, f"device {str(device)!r}", f"use {setting} = {instead}")


_FEWEST_ROWS = 16  # fewer are not faster, and every number of rows is a kernel of its own
# Each shape is a kernel, and batches have all kinds of them: the thousand that oneDNN would keep
# double the memory of a training, and those of one batch are all that is used again.
_KERNELS = 32
# Multiplications. A kernel that is not kept takes 0.3 ms to make, and in a search, whose rows
# become fewer, hardly any is. On Zen 4 all from 2²³ to 2²⁷ are as good; where oneDNN is twice as
# fast as MKL (Zen 5, not measured), those 0.3 ms are won back from 2²⁴ or 2²⁵ on.
_LEAST = 2**24
_LEAST_HALVES = 2**21  # less than this is hardly more than the call


class Linear(nn.Linear):
    """`nn.Linear` by `linear`: the same parameters, names and numbers."""

    def forward(self, input: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows outputs"]:
        """W x + b."""
        return linear(input, self.weight, self.bias)


def linear(
    x: Float[Tensor, "*rows inputs"],
    weight: Float[Tensor, "outputs inputs"],
    bias: Float[Tensor, " outputs"] | None = None,
) -> Float[Tensor, "*rows outputs"]:
    """y = x Wᵀ + b, as `F.linear`, its twin, up to the order of summation.

    torch multiplies float32 on a CPU by Intel's MKL, which does not use AVX-512 on processors of
    other makers. oneDNN, which torch contains too, does, and is more than twice as fast there. So
    on such a processor large products go to oneDNN, forward and backward. All others are
    `F.linear`, and so are all if `torch.backends.mkldnn.enabled` is False.
    """
    if is_bf16_matmul() and _pays_in_bf16(x, weight, bias):
        return bf16_linear(x, weight, bias)
    if not _pays_by_onednn(x, weight, bias):
        return F.linear(x, weight, bias)
    # A view of some columns would be multiplied by a kernel that is a hundred times as slow.
    rows, weight = _dense(x.reshape(-1, x.shape[-1])), _dense(weight)
    inputs = (rows, weight) if bias is None else (rows, weight, bias)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs):
        y: Tensor = _Product.apply(rows, weight, bias)  # type: ignore[no-untyped-call]
    else:
        y = _product(rows, weight, bias)
    return y.view(*x.shape[:-1], weight.shape[0])


class _Product(torch.autograd.Function):
    """oneDNN's product with a gradient, which can be differentiated in turn."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        needs_rows_grad, needs_weight_grad, _ = ctx.needs_input_grad
        ctx.save_for_backward(
            rows if needs_weight_grad else None, weight if needs_rows_grad else None
        )
        return _product(rows, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        needs_rows_grad, needs_weight_grad, needs_bias_grad = ctx.needs_input_grad
        return (
            linear(gradient, weight.t()) if needs_rows_grad else None,
            gradient_of_weight(gradient, rows) if needs_weight_grad else None,
            gradient.sum(0) if needs_bias_grad else None,
        )


def gradient_of_weight(
    gradient: Float[Tensor, "rows outputs"], x: Float[Tensor, "rows inputs"]
) -> Float[Tensor, "outputs inputs"]:
    """dW = gᵀ x, laid out as W is: fused optimisers go over both as over so many numbers."""
    # The wider side as columns is a quarter faster by oneDNN, copy and all.
    wider = gradient.shape[1] > x.shape[1] and not is_bf16_matmul()
    if wider and _pays_by_onednn(x.t(), gradient.t(), None):
        return linear(x.t(), gradient.t()).t().contiguous()
    return linear(gradient.t(), x.t())


def _product(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    y: Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return y


def _pays_by_onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    return (
        not torch.compiler.is_compiling()  # first, because the rest must not run under tracing
        and all(is_plain_cpu_float32(tensor) for tensor in (x, weight, bias) if tensor is not None)
        and _is_large_enough(x, weight, _LEAST)
        and onednn_is_faster()
        and _fit(x, weight, bias)
        and bool(torch.backends.mkldnn.enabled)
        and not torch.is_autocast_enabled("cpu")
        and not is_traced_or_transformed()
    )


def _pays_in_bf16(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    return all(
        is_plain_cpu_float32(tensor) for tensor in (x, weight, bias) if tensor is not None
    ) and _is_large_enough(x, weight, _LEAST_HALVES)


def _is_large_enough(x: Tensor, weight: Tensor, least: int) -> bool:
    """Return True if the product is large enough to pay off."""
    rows = x.numel() // max(1, x.shape[-1]) if x.ndim else 0
    return rows >= _FEWEST_ROWS and rows * weight.numel() >= least


def _fit(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Return True if they go together as oneDNN takes them for granted."""
    return (
        weight.ndim == 2
        and x.shape[-1] == weight.shape[1]
        and (bias is None or (bias.shape == weight.shape[:1] and bias.is_contiguous()))
    )


def is_traced_or_transformed() -> bool:
    """Return True under tracing, forward-mode derivatives, vmap, and torch dispatch modes."""
    return (
        torch._C._get_tracing_state() is not None
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
    )


def is_general_backward(gradient: Tensor) -> bool:
    """Return True in a backward pass whose gradients are differentiated in turn (`create_graph`),
    or that takes many gradients at once (`is_grads_batched`): then only plain operations will do.
    """
    functorch = torch._C._functorch
    return (
        torch.is_grad_enabled()
        or functorch.is_batchedtensor(gradient)
        or functorch.is_legacy_batchedtensor(gradient)
    )


def _dense(matrix: Tensor) -> Tensor:
    """The matrix, all of its memory, as it stands or turned."""
    dense = matrix.is_contiguous() or matrix.t().is_contiguous()
    return matrix if dense else matrix.contiguous()


def is_plain_cpu_float32(tensor: Tensor) -> bool:
    """Return True for plain float32 tensors on the CPU: not fake, sharded or subclassed."""
    return (
        type(tensor) in (Tensor, nn.Parameter)
        and tensor.layout == torch.strided
        and not tensor.is_nested
        and tensor.dtype == torch.float32
        and tensor.device.type == "cpu"
    )


@cache
def onednn_is_faster() -> bool:
    """Return True if oneDNN is the faster one here: beside MKL, on a processor of AMD with
    AVX-512.
    """
    return (
        torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and torch.backends.cpu.get_cpu_capability().startswith("AVX512")
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and processor_maker() == "AuthenticAMD"
    )


def keep_few_kernels() -> None:
    """Let oneDNN keep few kernels, unless the user said how many; it asks when it makes its first,
    of an LSTM perhaps, on whatever processor."""
    for cached in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(cached, str(_KERNELS))


keep_few_kernels()

"""`with observe(model) as trace:` — every attention of the block, without changing a kernel."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from attlas.errors import AttlasError, join_paths
from attlas.recording.hooks import Listener, attention_hooks, listening, modules_of
from attlas.recording.recorder import Recorder
from attlas.recording.torch_functions.mode import tracking_attention
from attlas.recording.trace import Selection, Trace, is_integer

# Models that were compiled, in which nobody can listen.


def check_not_compiled(model: nn.Module) -> None:
    """Errors: `AttlasError` for a model that torch.compile has taken over, wholly or in part, or
    torch.jit."""
    for path, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            raise AttlasError(
                "a model in Python: a scripted one calls no function that could be heard",
                f"its module {path!r}, a {type(module).__name__}"
                if path
                else type(module).__name__,
                "observe the model that was scripted or traced",
            )
        whole = "_orig_mod" in module._modules or "_orig_mod" in vars(module)
        within = hasattr(module.forward, "_torchdynamo_orig_callable")
        if whole or within or getattr(module, "_compiled_call_impl", None) is not None:
            where = f"its module {path!r}" if path else type(module).__name__
            raise AttlasError(
                "a model as it was before torch.compile: compiled code calls no function that "
                "could be heard",
                f"{where}, which is compiled",
                "observe the model itself: torch.compile(model) leaves `model` as it was"
                if whole
                else "observe a copy of it that was not compiled",
            )


@contextmanager
def observe(
    model: nn.Module,
    *,
    layers: str | Sequence[str] | None = None,
    heads: int | Sequence[int] | None = None,
    last_calls: int | None = None,
) -> Iterator[Trace]:
    """Record an attention map per attention call of `model` in this thread.

    Heard are layers of attlas, and whatever calls `F.scaled_dot_product_attention`, is or holds an
    `nn.MultiheadAttention`, or multiplies a softmax with values: PyTorch's Transformers, those of
    Hugging Face with any kernel that runs in PyTorch, one's own. Layers go by the path of the
    module that computes them. The steps of a generation with a cache become one map.

    The outputs, kernels and gradients of the model are the same with and without it; attention maps
    are detached from the graph. Two ways are shorter while nobody looks: PyTorch's own Transformers
    leave their inference fast path (outputs agree to 1e-6, but for padding, which that sets to 0),
    and a search of attlas's own models its short ways through steps and padding (log-probabilities
    differ by the rounding of float32, which may decide between equals). A trace that stayed empty
    raises and says why, unless the block itself raised first. What looked beside others and could
    not be read is told in a warning: where, how often and why.

    layers: paths of the layers to keep, or patterns such as "encoder.*"; heads: of each of them, by
    number; last_calls: so many calls of each layer, the newest. None = all. What is not kept costs
    no memory.

    Errors: `AttlasError` where nothing was heard or kept, for what is no path, number of a head or
    number of calls, and for a compiled model. A compiled function within one runs as it is written.
    """
    names, modules = attention_hooks(model), modules_of(model)
    check_not_compiled(model)
    if last_calls is not None and not (is_integer(last_calls) and last_calls > 0):
        raise AttlasError(
            "a whole number of calls of each layer to keep, at least one",
            f"last_calls={last_calls!r:.80}",
            "leave it out for all",
        )
    trace = Trace()
    selection = Selection.of(layers, heads)
    recorder = Recorder(trace, selection, last_calls)
    with (
        listening(Listener(names, recorder.record, None, modules, recorder)),
        tracking_attention(model),
    ):
        yield trace
    unmatched = selection.unmatched(recorder.called_layers)
    if recorder.called_layers and not trace:
        raise AttlasError(
            f"layers among those that were heard, {join_paths(sorted(recorder.called_layers))}",
            f"layers={layers!r}, which none of them matches",
            "name them by their paths, or by a pattern with *",
        )
    if trace and unmatched:
        warnings.warn(
            f"layers={unmatched} match none of those that were heard, "
            f"{join_paths(sorted(recorder.called_layers))}",
            stacklevel=3,
        )
    if not trace:
        raise AttlasError("at least one attention call inside the block", *_why(model, recorder))
    unreadable_calls = recorder.unreadable_calls()
    if unreadable_calls:
        warnings.warn(
            "attention that attlas cannot read, and that is not in the trace: "
            + "; ".join(unreadable_calls),
            stacklevel=3,
        )


_NO_SOFTMAX = (
    "observe a model that looks by softmax(scores) @ values, F.scaled_dot_product_attention, "
    "flex_attention or nn.MultiheadAttention; Fourier mixing, sigmoids, linear attention and state "
    "spaces (FNet, Mamba, RWKV) have no such weights; of a kernel outside of PyTorch (flash-attn, "
    "xformers) load the model with attn_implementation='sdpa'"
)


def _why(model: nn.Module, recorder: Recorder) -> tuple[str, str]:
    """Why nothing was heard, and what to do."""
    name = type(model).__name__
    if not recorder.has_run:
        return f"none: {name} did not run", "call this very model inside the block, in this thread"
    unreadable_calls = recorder.unreadable_calls()
    if unreadable_calls:
        told = "what attlas cannot read: " + "; ".join(unreadable_calls)
        return (
            told,
            "record such a layer by an AttentionHook of its own, see "
            "attlas.recording.AttentionHook",
        )
    if recorder.softmaxed:
        return (
            f"a softmax in {join_paths(sorted(recorder.softmaxed))}, which no product with "
            "values "
            "followed",
            "heard is softmax(…) @ values, by matmul, bmm or einsum, with an axis of queries; for "
            "what is written otherwise hold an AttentionHook, see attlas.recording.AttentionHook",
        )
    return (
        f"no attention by softmax in PyTorch's functions, although {name} ran",
        _NO_SOFTMAX,
    )

"""`with observe(model) as trace:` — every attention of the block, without changing a kernel."""

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

import torch
from torch import nn

from attlas.errors import AttlasError, UnsupportedError, join_paths
from attlas.recording.hooks import (
    Listener,
    attention_hooks,
    check_module,
    has_only_hooked_attention,
    listening,
    modules_of,
)
from attlas.recording.recorder import Recorder
from attlas.recording.torch_functions.mode import tracking_attention
from attlas.recording.trace import Selection, Trace, is_integer

# Compiled models cannot be observed.


def check_not_compiled(model: nn.Module) -> None:
    """Raise `AttlasError` for a model that torch.compile has taken over, wholly or in part, or
    torch.jit.
    """
    for path, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            raise UnsupportedError(
                "a model in Python: a scripted one calls no function that attlas can see",
                f"its module {path!r}, a {type(module).__name__}"
                if path
                else type(module).__name__,
                "observe the model that was scripted or traced",
            )
        is_compiled = "_orig_mod" in module._modules or "_orig_mod" in vars(module)
        is_compiled_forward = hasattr(module.forward, "_torchdynamo_orig_callable")
        if (
            is_compiled
            or is_compiled_forward
            or getattr(module, "_compiled_call_impl", None) is not None
        ):
            description = f"its module {path!r}" if path else type(module).__name__
            raise UnsupportedError(
                "a model as it was before torch.compile: compiled code calls no function that "
                "attlas can see",
                f"{description}, which is compiled",
                "observe the model itself: torch.compile(model) leaves `model` as it was"
                if is_compiled
                else "observe a copy of it that was not compiled",
            )


# The `with` block.

Entered = TypeVar("Entered")


class NotEnteredError(AttlasError, AttributeError):
    """A block that was used without `with`."""


class WithBlock(AbstractContextManager[Entered], Generic[Entered]):
    """The block that `with` enters, once. Any other use raises an error that names `with`."""

    def __init__(self, usage: str, manager: AbstractContextManager[Entered]) -> None:
        self._usage, self._manager = usage, manager
        self._is_known = False  # to its caller: it was entered, or warned that it has to be

    def __enter__(self) -> Entered:
        if self._usage == _USED:
            raise AttlasError(
                "a new block for each `with`",
                "one that was entered before",
                "call the function again",
            )
        self._is_known, self._usage = True, _USED
        return self._manager.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return self._manager.__exit__(kind, error, traceback)

    def _misused(self, how: str) -> NotEnteredError:
        self._is_known = True
        if self._usage == _USED:
            hint = "use what `as` names"
        else:
            hint = f"write `{self._usage}` and call the model inside the block"
        return NotEnteredError("a block that is entered by `with`", how, hint)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self._misused(f"its attribute {name!r} without it")

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise self._misused("a call of it")

    def __getitem__(self, key: object) -> NoReturn:
        raise self._misused(f"[{key!r}] without it")

    def __iter__(self) -> NoReturn:
        raise self._misused("a loop over it")

    def __len__(self) -> NoReturn:
        raise self._misused("its length without it")

    def __contains__(self, _: object) -> NoReturn:
        raise self._misused("`in` without it")

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        """How to use it."""
        return "<a block that was entered>" if self._usage == _USED else f"<write: {self._usage}>"

    def __del__(self) -> None:
        if not vars(self).get("_is_known", True) and not sys.is_finalizing():
            warnings.warn(
                f"nothing was recorded or changed, because the block was never entered: write "
                f"`{self._usage}` and call the model inside the block",
                RuntimeWarning,
                stacklevel=2,
            )


_USED = ""


def observe(
    model: nn.Module,
    *,
    layers: str | Sequence[str] | None = None,
    heads: int | Sequence[int] | None = None,
    last_calls: int | None = None,
) -> WithBlock[Trace]:
    """Record an attention map for each attention call of `model` in this thread.

    `observe` records the layers of attlas, `nn.MultiheadAttention`, and every call of
    `F.scaled_dot_product_attention` or product of a softmax with values. So it reads PyTorch's
    Transformers, your own models, and those of Hugging Face with any kernel that runs in PyTorch. A
    layer has the path of the module that computes it. The steps of a generation with a cache become
    one map.

    The model has the same outputs, kernels and gradients inside the block. Attention maps are
    detached from the graph. There are two exceptions. PyTorch's Transformers leave their inference
    fast path: outputs agree to 1e-6, except in padding, which that path sets to 0. A search of
    attlas's own models leaves its shortcuts: log-probabilities differ by the rounding of float32,
    which may decide between equal scores.

    An empty trace raises an error that says why, unless the block raised one. A warning names the
    attention that could not be read: where, how often and why.

    Args:
        layers: Paths of the layers to keep, or patterns such as "encoder.*"; None = all.
        heads: The numbers of the heads to keep; None = all.
        last_calls: How many calls of each layer to keep, the newest; None = all. What is not kept
            costs no memory.

    Raises:
        AttlasError: If nothing was recorded or kept, or an argument has no such form.
        UnsupportedError: For a compiled model. A compiled function inside a model runs as it is
            written.

    Example:
        >>> import torch, attlas
        >>> model = torch.nn.MultiheadAttention(16, 4, batch_first=True)
        >>> x = torch.randn(1, 3, 16)
        >>> with attlas.observe(model) as trace:
        ...     output, _ = model(x, x, x)
        >>> list(trace), trace[""].shape
        ([''], (1, 4, 3, 3))
    """
    check_module(model)
    check_not_compiled(model)
    if last_calls is not None and not (is_integer(last_calls) and last_calls > 0):
        raise AttlasError(
            "a whole number of calls of each layer to keep, at least one",
            f"last_calls={last_calls!r:.80}",
            "leave it out for all",
        )
    selection = Selection.of(layers, heads)
    usage = "with attlas.observe(model) as trace:"
    return WithBlock(usage, _observing(model, selection, layers, last_calls))


@contextmanager
def _observing(
    model: nn.Module,
    selection: Selection,
    layers: str | Sequence[str] | None,
    last_calls: int | None,
) -> Iterator[Trace]:
    names, modules = attention_hooks(model), modules_of(model)
    trace = Trace()
    recorder = Recorder(trace, selection, last_calls)
    with (
        listening(Listener(names, recorder.record, None, modules, recorder)),
        tracking_attention(model),
    ):
        yield trace
    unmatched = selection.unmatched(recorder.called_layers)
    if recorder.called_layers and not trace:
        raise AttlasError(
            f"layers among those that were called, {join_paths(sorted(recorder.called_layers))}",
            f"layers={layers!r}, which none of them matches",
            "name them by their paths, or by a pattern with *",
        )
    if trace and unmatched:
        warnings.warn(
            f"layers={unmatched} match none of those that were called, "
            f"{join_paths(sorted(recorder.called_layers))}",
            stacklevel=4,
        )
    if not trace:
        raise AttlasError(
            "at least one attention call inside the block", *explain_empty_trace(model, recorder)
        )
    unreadable_calls = recorder.unreadable_calls()
    if unreadable_calls:
        warnings.warn(
            "attention that attlas cannot read, and that is not in the trace: "
            + "; ".join(unreadable_calls),
            stacklevel=4,
        )


_NO_SOFTMAX = (
    "observe a model that computes softmax(scores) @ values, F.scaled_dot_product_attention, "
    "flex_attention or nn.MultiheadAttention; Fourier mixing, sigmoids, linear attention and state "
    "spaces (FNet, Mamba, RWKV) have no such weights; for a kernel outside of PyTorch (flash-attn, "
    "xformers) load the model with attn_implementation='sdpa'"
)


def explain_empty_trace(model: nn.Module, recorder: Recorder) -> tuple[str, str]:
    """Why nothing was recorded, and what to do."""
    name = type(model).__name__
    call = "call this model inside the block, in this thread"
    if has_only_hooked_attention(model):
        return f"none: no attention layer of {name} ran", call
    if not recorder.has_run:
        return f"none: {name} did not run", call
    unreadable_calls = recorder.unreadable_calls()
    if unreadable_calls:
        reason = "what attlas cannot read: " + "; ".join(unreadable_calls)
        return (
            reason,
            "record such a layer with an AttentionHook, see attlas.recording.AttentionHook",
        )
    if recorder.softmaxed:
        return (
            f"a softmax in {join_paths(sorted(recorder.softmaxed))}, without a product with "
            "values after it",
            "attlas sees softmax(…) @ values, by matmul, bmm or einsum, with an "
            "axis of queries; for anything else use an AttentionHook, see "
            "attlas.recording.AttentionHook",
        )
    reason = f"no attention by softmax in PyTorch's functions, although {name} ran"
    if recorder.matrices:
        paths = join_paths(sorted(recorder.matrices))
        return (
            f"{reason}; a softmax of two axes in {paths} counts as one of texts and classes",
            "if its axes are queries and keys, give the scores an axis of texts, scores[None]; "
            f"else {_NO_SOFTMAX}",
        )
    return reason, _NO_SOFTMAX

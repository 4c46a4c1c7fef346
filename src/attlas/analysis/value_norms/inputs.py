"""Record the inputs of each layer's values while a model runs."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attlas.analysis.value_norms.projections import find_projections
from attlas.errors import AttlasError, UnsupportedError

# The inputs of the values of one call of a layer.


@dataclass(frozen=True, slots=True)
class ValueInputs:
    """The vectors that were projected to values, one for each key; and the heads' outputs.

    Texts are first, and their places second; or the other way round, where a layer has them so.

    Args:
        read: The concatenated heads' outputs, the input of the output projection; None = unknown.
            `ValueNorms` checks with it that the layer does nothing but project.
    """

    vectors: Float[Tensor, "batch keys key_dim"]
    read: Float[Tensor, "_ _ all_heads"] | None = None  # batch, queries

    @classmethod
    def joined(cls, steps: Sequence["ValueInputs"]) -> "ValueInputs":
        """Those of a generation, which is recorded step by step, joined along the source."""
        contexts = [step.read for step in steps if step.read is not None]
        axis = 1 if len({len(step.vectors) for step in steps}) == 1 else 0  # places first
        joined = torch.cat(contexts, axis) if len(contexts) == len(steps) else None
        return cls(torch.cat([step.vectors for step in steps], axis), joined)

    def turned(self) -> "ValueInputs":
        """The same of a layer that has places first and texts second."""
        return ValueInputs(
            self.vectors.transpose(0, 1), None if self.read is None else self.read.transpose(0, 1)
        )


RecordedInputs = dict[str, list[ValueInputs]]

_AXES = 3  # texts, places, width


@contextmanager
def record_value_inputs(model: nn.Module) -> Iterator[RecordedInputs]:
    """`with observe(model) as trace, record_value_inputs(model) as sources: model(...)`

    For each layer path of a trace, the inputs of the values of every call, and the heads' outputs.
    A cached generation computes new keys in each step: `ValueInputs.joined` concatenates them.

    It uses hooks on the model, which are removed at the end of the block. So other threads that run
    the model meanwhile are recorded, too, and PyTorch's Transformers leave their inference fast
    path.

    Raises:
        AttlasError: For a model none of whose layers `value_map` knows, and if none of those ran,
            unless the block itself raised first.
    """
    inputs: RecordedInputs = {}
    with ExitStack() as stack:
        is_known = False
        for path, _ in model.named_modules(remove_duplicate=False):
            projections = find_projections(model, path)
            if projections is None:
                continue
            is_known = True
            calls = inputs.setdefault(path, [])
            if isinstance(projections, nn.MultiheadAttention):
                hooks: list[tuple[nn.Module, Any]] = [(projections, _Given(calls))]
            else:
                layer = model.get_submodule(path)
                hooks = [
                    (projections.value, _Made(calls)),
                    (projections.output, _Read(calls, layer)),
                ]
            for listened, hook in hooks:
                handle = listened.register_forward_pre_hook(hook, with_kwargs=True)
                stack.callback(handle.remove)
        if not is_known:
            raise UnsupportedError(
                "a model with an attention whose values are projected as `value_map` knows",
                type(model).__name__,
                "see attlas.analysis.Projections for the layers that it knows",
            )
        yield inputs
    for path in [path for path, calls in inputs.items() if not calls]:
        del inputs[path]
    if not inputs:
        raise AttlasError(
            "at least one attention call inside the block",
            f"none of {type(model).__name__}",
            "call this very model inside the block",
        )


@dataclass(frozen=True, slots=True)
class _Given:
    """A hook that records the value input of PyTorch's layer."""

    calls: list[ValueInputs]

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        value = kwargs["value"] if "value" in kwargs else args[2]
        source = _copied(value)
        if value.ndim == _AXES and not getattr(module, "batch_first", False):
            source = source.transpose(0, 1)
        self.calls.append(ValueInputs(source))


@dataclass(frozen=True, slots=True)
class _Made:
    """A hook that records the input of a linear value map."""

    calls: list[ValueInputs]

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.calls.append(ValueInputs(_copied(args[0] if args else kwargs["input"])))


@dataclass(frozen=True, slots=True)
class _Read:
    """A hook that adds the heads' outputs, unless the layer has dropout on its weights."""

    calls: list[ValueInputs]
    layer: nn.Module

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.calls and self.calls[-1].read is None and not _drops(self.layer):
            context = _copied(args[0] if args else kwargs["input"])
            self.calls[-1] = replace(self.calls[-1], read=context)


def _drops(layer: nn.Module) -> bool:
    """Return True if it may drop weights: if the module, a child or its configuration has a dropout
    rate.
    """
    if not layer.training:
        return False
    owners = (*layer.modules(), getattr(layer, "config", None))
    attributes = [(name, rate) for owner in owners for name, rate in vars(owner or object).items()]
    rates = [rate for name, rate in attributes if "drop" in name and isinstance(rate, int | float)]
    rates += [module.p for module in layer.modules() if isinstance(module, nn.Dropout)]
    return any(rate > 0 for rate in rates if not isinstance(rate, bool))


def _copied(tensor: Tensor) -> Tensor:
    """A copy, with an axis for texts."""
    return (tensor.unsqueeze(0) if tensor.ndim < _AXES else tensor).detach().clone()

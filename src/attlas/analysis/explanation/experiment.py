"""An experiment: the same call of a model, again and again, with other weights."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from attlas.errors import AttlasError
from attlas.layers.cudnn import without_cudnn
from attlas.recording import intervene
from attlas.recording.selection import Selection
from attlas.recording.tap import Rewrite, Seen, Weights

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Experiment(Generic[Result]):
    """`call()` runs the model and returns what is to be known of it, such as its logits.

    chosen: of which layers and heads the weights are changed; None of either = all. Every run is
    in eval mode, and with the explicit form of each attention, so that two runs differ by their
    weights alone. The call must give the same thing each time: a batch of its own, no sampling.
    """

    model: nn.Module
    call: Callable[[], Result]
    chosen: Selection = field(default_factory=Selection)

    def plain(self) -> Result:
        """What the call returns with the weights that the model computes."""
        return self.under(lambda weights, seen, layer: weights)

    def under(self, change: Rewrite) -> Result:
        """What the call returns while `change` rewrites the weights of the chosen heads.

        Errors: `AttlasError` for a model without attention, for layers or heads that it has not,
        and for a call that puts the model into training mode.
        """
        heard: dict[str, bool] = {}

        def chosen(weights: Weights, seen: Seen, layer: str) -> Weights:
            heard[layer] = self.chosen.wants(layer)
            if not heard[layer]:
                return weights
            heads = self._heads(weights, layer)
            new = change(weights, seen, layer).to(weights.dtype)
            return new if self.chosen.heads is None else torch.where(heads, new, weights)

        with intervene(self.model, chosen), settled(self.model):
            result = self.call()
        unmatched = self.chosen.unmatched(heard)
        if unmatched:
            raise AttlasError(
                f"layers among those that were heard, {list(heard)}",
                f"layers={unmatched!r}, which none of them matches",
                "name them by their paths, or by a pattern with *",
            )
        return result

    def _heads(self, weights: Weights, layer: str) -> Bool[Tensor, "heads 1 1"]:
        """Which heads of a layer are chosen."""
        count = weights.shape[1]
        heads = range(count) if self.chosen.heads is None else self.chosen.heads
        check_heads(heads, count, layer)
        chosen = torch.zeros(count, 1, 1, dtype=torch.bool)
        chosen[list(heads)] = True
        return chosen.to(weights.device)


def check_heads(heads: range | tuple[int, ...], count: int, layer: str) -> None:
    """`AttlasError` for a head that a layer of so many has not."""
    wrong = [head for head in heads if not 0 <= head < count]
    if wrong:
        raise AttlasError(
            f"heads from 0 to {count - 1} in layer {layer!r}",
            str(wrong),
            "name heads that every chosen layer has, or choose layers too",
        )


@contextmanager
def settled(model: nn.Module) -> Iterator[None]:
    """The model in eval mode for the length of a block: dropout would hide what weights do.

    Afterwards the flag of every module is as it was, also when the block raises.
    """
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
        if any(module.training for module in model.modules()):
            raise AttlasError(
                "a call that leaves the model in eval mode",
                "one that puts it into training mode",
                "leave model.train() out of the call",
            )
    finally:
        for module, training in before:
            module.training = training


@contextmanager
def differentiable() -> Iterator[None]:
    """Gradients are on, whatever is around; the model's own `.grad` is left alone by its users.

    Without cuDNN, whose recurrent layers have no gradient in eval mode.
    """
    with without_cudnn, torch.inference_mode(False), torch.enable_grad():
        yield

"""Rows of attention in focus, and the output that they lead to."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attlas.analysis.explanation.experiment import Experiment, differentiable
from attlas.analysis.explanation.focus import Focus
from attlas.analysis.explanation.output import output_under, plain_output
from attlas.errors import AttlasError
from attlas.recording.tap import Seen, Weights


@dataclass(frozen=True, slots=True)
class Rows:
    """The weights of the rows in focus, what they may see, and the output of each example.

    rows: every head and query in focus. asked: which of them a token asks, and not padding: in a
    map that looks at itself, a slot that no query sees is padding, and so is its query. Those rows
    alone count and are changed, so that a text is told the same in any company. The examples of a
    batch do not see each other.
    """

    experiment: Experiment[Tensor]
    layer: str
    call: int
    chosen: Bool[Tensor, "heads queries"]
    weights: Float[Tensor, "batch rows slots"]
    seen: Bool[Tensor, "batch rows slots"]
    asked: Bool[Tensor, "batch rows"]
    output: Float[Tensor, "batch labels"]

    @classmethod
    @torch.inference_mode(False)  # gradients are taken through what is kept here
    def of(cls, model: nn.Module, call: Callable[[], Tensor], focus: Focus) -> "Rows":
        """Run the call three times, and keep what it says.

        Errors: `AttlasError` where the focus does not fit the model, or is on padding alone in some
        text, and where the logits are not one distribution for each row of the batch; as of
        `Experiment` and `distribution` too.
        """
        experiment = Experiment(model, call)
        heard: dict[str, list[tuple[Weights, Seen] | None]] = {}

        def keep(weights: Weights, seen: Seen, layer: str) -> Weights:
            calls = heard.setdefault(layer, [])
            wanted = focus.layer in (None, layer) and focus.call in (None, len(calls))
            calls.append((weights, seen) if wanted else None)
            return weights

        with torch.no_grad():
            output = plain_output(experiment)
            output_under(experiment, keep)
        layer = _layer(focus, list(heard))
        number = _call(focus, len(heard[layer]), layer)
        found = heard[layer][number]
        assert found is not None  # `_layer` and `_call` chose what the focus wanted
        weights, seen = found
        chosen = focus.rows(weights.shape[1], weights.shape[2], layer)
        if output.ndim != 2 or len(output) != len(weights):
            raise AttlasError(
                f"logits of shape (batch, labels), batch = {len(weights)}",
                f"shape {tuple(output.shape)}",
                "return those of one position of each text, such as model(**batch).logits[:, -1]",
            )
        precise = torch.promote_types(weights.dtype, torch.float32)
        seen = seen.expand_as(weights)
        asked = _asked(seen, focus)[:, chosen]
        _check_asked(asked, seen, layer)
        rows = weights[:, chosen].to(precise)
        return cls(experiment, layer, number, chosen, rows, seen[:, chosen], asked, output)

    @property
    def vector(self) -> Float[Tensor, "batch slots"]:
        """a_j = mean_r α_rj over the rows that are asked: the weight of a slot."""
        count = self.asked.sum(1, keepdim=True).clamp(min=1)
        return (self.weights * self.asked[..., None]).sum(1) / count

    @property
    def visible(self) -> Bool[Tensor, "batch slots"]:
        """Which slots any of the rows that are asked may see."""
        return (self.seen & self.asked[..., None]).any(1)

    @property
    def decision(self) -> Float[Tensor, "batch labels"]:
        """1 at the label that is decided for, 0 elsewhere."""
        decided = torch.zeros_like(self.output)
        return decided.scatter(-1, self.output.argmax(-1, keepdim=True), 1.0)

    def output_of(
        self, weights: Float[Tensor, "batch rows slots"]
    ) -> Float[Tensor, "batch labels"]:
        """The output with these weights in place of the rows'; gradients flow back to them."""
        calls = 0

        def put(own: Weights, seen: Seen, layer: str) -> Weights:
            nonlocal calls
            if layer != self.layer:
                return own
            calls += 1
            if calls != self.call + 1:
                return own
            changed = own.clone()
            changed[:, self.chosen] = weights.to(own.dtype)
            return changed

        return output_under(self.experiment, put)

    def flipped(self, output: Float[Tensor, "batch labels"]) -> Bool[Tensor, " batch"]:
        """Whether this output decides for another label."""
        return output.argmax(-1) != self.output.argmax(-1)

    def without(self, gone: Bool[Tensor, "batch slots"]) -> Float[Tensor, "batch rows slots"]:
        """α_rj / Σ_kept α_rk · Σ α_rk on the slots that are kept, 0 on those that are gone.

        A row of which nothing is kept reads nothing; one of padding stays as it is.
        """
        kept = self.weights.masked_fill(gone[:, None], 0.0)
        total = self.weights.sum(-1, keepdim=True)
        left = kept.sum(-1, keepdim=True)
        changed = torch.where(left > 0, kept / left, 0.0) * total
        return torch.where(self.asked[..., None], changed, self.weights)

    def gradients(self) -> Float[Tensor, "batch rows slots"]:
        """∂ p(ŷ) / ∂ α_rj, ŷ the label that is decided for.

        The other weights of the map stay as they are; those of later layers move with what they
        read. 0 on slots that the row does not see, which can get no weight, and in rows of padding.
        """
        with differentiable():
            weights = self.weights.clone().requires_grad_()
            decided = (self.output_of(weights) * self.decision).sum()
            counts = self.seen & self.asked[..., None]
            return slope(decided, weights).masked_fill(~counts, 0.0)


def slope(value: Float[Tensor, ""], weights: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """∂ value / ∂ weights; no other gradient is touched.

    Errors: `AttlasError` where the value does not come from the weights by steps with a gradient.
    """
    found = (
        torch.autograd.grad(value, weights, allow_unused=True)[0] if value.requires_grad else None
    )
    if found is None:
        raise AttlasError(
            "an output that has a gradient with respect to the weights",
            "one that has none",
            "leave torch.no_grad() and .detach() out of the call",
        )
    return found


def _layer(focus: Focus, layers: list[str]) -> str:
    if focus.layer is None and len(layers) == 1:
        return layers[0]
    if focus.layer is None or focus.layer not in layers:
        raise AttlasError(
            f"one of the layers {layers}",
            "none" if focus.layer is None else repr(focus.layer),
            "name it: Focus(layer=…)",
        )
    return focus.layer


def _call(focus: Focus, calls: int, layer: str) -> int:
    if focus.call is None and calls == 1:
        return 0
    if focus.call is None or not 0 <= focus.call < calls:
        raise AttlasError(
            f"one of the {calls} calls of layer {layer!r}, from 0",
            "none" if focus.call is None else str(focus.call),
            "choose it: Focus(call=…)",
        )
    return focus.call


def _asked(
    seen: Bool[Tensor, "batch heads queries slots"], focus: Focus
) -> Bool[Tensor, "batch heads queries"]:
    """Which queries stand at a slot that some query sees; all of them, of a map that is across."""
    queries, slots = seen.shape[2:]
    if focus.across or queries != slots:
        return torch.ones_like(seen[..., 0])
    return seen.flatten(1, 2).any(1)[:, None].expand(seen.shape[:3])


def _check_asked(
    asked: Bool[Tensor, "batch rows"], seen: Bool[Tensor, "batch heads queries slots"], layer: str
) -> None:
    """Errors: `AttlasError` for a text that has tokens, and none of them in focus."""
    silent = seen.flatten(1).any(1) & ~asked.any(1)
    if bool(silent.any()):
        raise AttlasError(
            f"a query of a token in every text, in layer {layer!r}",
            f"padding alone in text {int(silent.int().argmax())}",
            "choose other queries, pad on the other side, or say Focus(across=True) where the map "
            "does not look at itself",
        )

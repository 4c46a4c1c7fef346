"""Interventions: repeated calls of a model with changed attention weights."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attlas._hardware import without_cudnn
from attlas.errors import AttlasError
from attlas.recording import intervene
from attlas.recording.hooks import Allowed, WeightPatch, Weights
from attlas.recording.trace import Selection

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Intervention(Generic[Result]):
    """`call()` runs the model and returns its outputs, such as its logits.

    Every run is in eval mode, with explicit attention, so that two runs differ only by their
    weights. The call must be deterministic: a fixed batch, no sampling.

    Args:
        chosen: The layers and heads whose weights are changed; None = all.
    """

    model: nn.Module
    call: Callable[[], Result]
    chosen: Selection = field(default_factory=Selection)

    def baseline(self) -> Result:
        """What the call returns with the weights that the model computes."""
        return self.with_change(lambda weights, allowed, layer: weights)

    def with_change(self, change: WeightPatch) -> Result:
        """What the call returns while `change` rewrites the weights of the chosen heads.

        Raises:
            AttlasError: For a model without attention, for layers or heads that do not exist, and
                for a call that puts the model into training mode.
        """
        matched: dict[str, bool] = {}

        def selected(weights: Weights, allowed: Allowed, layer: str) -> Weights:
            matched[layer] = self.chosen.is_selected(layer)
            if not matched[layer]:
                return weights
            heads = self._heads(weights, layer)
            new = change(weights, allowed, layer).to(weights.dtype)
            return new if self.chosen.heads is None else torch.where(heads, new, weights)

        with intervene(self.model, selected), eval_mode(self.model):
            result = self.call()
        unmatched = self.chosen.unmatched(matched)
        if unmatched:
            raise AttlasError(
                f"layers among those that were called, {list(matched)}",
                f"layers={unmatched!r}, which none of them matches",
                "name them by their paths, or by a pattern with *",
            )
        return result

    def _heads(self, weights: Weights, layer: str) -> Bool[Tensor, "heads 1 1"]:
        """Which heads of a layer are chosen."""
        count = weights.shape[1]
        heads = range(count) if self.chosen.heads is None else self.chosen.heads
        check_heads(heads, count, layer)
        selected_heads = torch.zeros(count, 1, 1, dtype=torch.bool)
        selected_heads[list(heads)] = True
        return selected_heads.to(weights.device)


def check_heads(heads: range | tuple[int, ...], count: int, layer: str) -> None:
    """`AttlasError` for a head that a layer of so many has not."""
    invalid = [head for head in heads if not 0 <= head < count]
    if invalid:
        raise AttlasError(
            f"heads from 0 to {count - 1} in layer {layer!r}",
            str(invalid),
            "name heads that every chosen layer has, or choose layers too",
        )


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Put the model into eval mode for the block: dropout would hide the effect of weights.

    Afterwards the flag of every module is as it was, also when the block raises.
    """
    modes = [(module, module.training) for module in model.modules()]
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
        for module, training in modes:
            module.training = training


@contextmanager
def gradients_enabled() -> Iterator[None]:
    """Enable gradients for the block, also inside `no_grad`. Callers do not touch the model's
    `.grad`.

    Without cuDNN, whose recurrent layers have no gradient in eval mode.
    """
    with without_cudnn, torch.inference_mode(False), torch.enable_grad():
        yield


# The target of an experiment: rows of one map.


@dataclass(frozen=True, slots=True)
class AttentionTarget:
    """Rows of one layer's map: those of these heads and queries.

    A model that pools by attention has one row per example. A model that classifies by its first
    token uses query 0; a language model uses query −1.

    Args:
        layer: Its path; None = the only one that the model has.
        heads, queries: By number, None = all; a query may be counted from the end, −1 = the last.
        call: Which of the layer's calls, from 0, where it is called more than once; None = the only
            one.
        cross_attention: Whether the map is of cross-attention; None = unless it is square. In
            self-attention, queries of padding do not count.
    """

    layer: str | None = None
    heads: int | Sequence[int] | None = None
    queries: int | Sequence[int] | None = None
    call: int | None = None
    cross_attention: bool | None = None

    def rows(self, heads: int, queries: int, layer: str) -> Bool[Tensor, "heads queries"]:
        """The rows of a map with so many heads and queries.

        Raises:
            AttlasError: For heads or queries that do not exist, and for an empty choice.
        """
        head_numbers, query_numbers = _numbers(self.heads, heads), _numbers(self.queries, queries)
        if not head_numbers or not query_numbers:
            raise AttlasError("at least one head and one query", "none", "leave it out for all")
        check_heads(head_numbers, heads, layer)
        invalid = [query for query in query_numbers if not -queries <= query < queries]
        if invalid:
            raise AttlasError(
                f"queries from 0 to {queries - 1} in layer {layer!r}, or from −1 back",
                str(invalid),
                "name queries that the layer has",
            )
        selected_rows = torch.zeros(heads, queries, dtype=torch.bool)
        selected_rows[torch.tensor(head_numbers)[:, None], torch.tensor(query_numbers)] = True
        return selected_rows


def _numbers(numbers: int | Sequence[int] | None, count: int) -> tuple[int, ...]:
    if numbers is None:
        return tuple(range(count))
    numbers = (
        numbers.tolist() if hasattr(numbers, "tolist") else numbers
    )  # NumPy's and torch's numbers
    return (numbers,) if isinstance(numbers, int) else tuple(numbers)


# Output distributions over labels, and distances between two of them.


_STEADY = 1e-3  # in total variation; far more than rounding makes, far less than dropout


def distribution(logits: object) -> Float[Tensor, "*examples labels"]:
    """softmax(logits), in float32 at least. If a model returns probabilities p, pass log p.

    Raises:
        AttlasError: For anything but logits of at least two labels.
    """
    if not isinstance(logits, Tensor) or not logits.is_floating_point() or logits.ndim == 0:
        raise AttlasError(
            "a call that returns logits, a tensor of shape (batch, labels)",
            f"{logits.dtype} of shape {tuple(logits.shape)}"
            if isinstance(logits, Tensor)
            else f"a {type(logits).__name__}",
            "return the logits alone, such as lambda: model(**batch).logits",
        )
    if logits.shape[-1] < 2:
        raise AttlasError(
            "logits of at least two labels",
            f"shape {tuple(logits.shape)}",
            "for one logit z of a sigmoid, return torch.cat([torch.zeros_like(z), z], -1)",
        )
    probabilities = torch.softmax(
        logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32)
    )
    if bool(probabilities.isnan().any()):
        raise AttlasError(
            "logits that are numbers", "NaN or infinity from the model", "check model and batch"
        )
    return probabilities


def output_with_change(
    intervention: Intervention[Tensor], change: WeightPatch
) -> Float[Tensor, "..."]:
    """The output distribution with other weights."""
    return distribution(intervention.with_change(change))


def baseline_output(intervention: Intervention[Tensor]) -> Float[Tensor, "..."]:
    """The output distribution with the weights of the model.

    Raises:
        AttlasError: If a second run gives another output: then the effect of other weights cannot
            be measured.
    """
    first, second = (distribution(intervention.baseline()) for _ in range(2))
    if first.shape != second.shape or bool((total_variation(first, second) > _STEADY).any()):
        raise AttlasError(
            "a call that gives the same output each time",
            "two outputs of one call that differ",
            "put every part that drops out or samples into eval mode, and keep to one batch",
        )
    return first


def total_variation(
    first: Float[Tensor, "*examples labels"], second: Float[Tensor, "..."]
) -> Float[Tensor, "*examples"]:
    """½ Σ_y |p(y) − q(y)|, from 0 (equal) to 1 Jain & Wallace, 2019, section 4.

    Raises:
        AttlasError: If they have not one shape.
    """
    _check(first, second)
    return (first - second).abs().sum(-1) / 2


def jensen_shannon(
    first: Float[Tensor, "*examples labels"], second: Float[Tensor, "..."]
) -> Float[Tensor, "*examples"]:
    """½ KL(p ‖ m) + ½ KL(q ‖ m), m = (p + q) / 2, in nats: from 0 (equal) to ln 2 (disjoint).

    Lin, Divergence Measures Based on the Shannon Entropy, 1991. Its gradient is finite where a
    probability is 0.

    Raises:
        AttlasError: If they have not one shape.
    """
    _check(first, second)
    middle = (first + second) / 2
    divergence = (_divergence(first, middle) + _divergence(second, middle)) / 2
    # Rounding may have gone a little below 0; the gradient stays that of the sum.
    return divergence + (divergence.clamp(min=0) - divergence).detach()


def _divergence(
    first: Float[Tensor, "*examples labels"], middle: Float[Tensor, "*examples labels"]
) -> Float[Tensor, "*examples"]:
    """KL(p ‖ m) = Σ p log(p / m), 0 log 0 = 0."""
    least = torch.finfo(first.dtype).tiny
    return (first * (first.clamp(min=least) / middle.clamp(min=least)).log()).sum(-1)


def _check(first: Tensor, second: Tensor) -> None:
    if first.shape != second.shape:
        raise AttlasError(
            f"two distributions of one shape, {tuple(first.shape)}",
            f"shape {tuple(second.shape)}",
            "let the call run the model on the same batch each time, without a search",
        )


# The rows of the target, and the output that they lead to.


@dataclass(frozen=True, slots=True)
class AttentionRows:
    """The weights of the rows in the target, the keys that they may see, and the output of each
    example.

    rows: every head and query in the target.

    Args:
        query_mask: Which rows have a query that is a token. In self-attention, a key that no query
            sees is padding, and so is its query. Only rows of tokens count and are changed, so that
            a text has the same results in any batch. The examples of a batch do not see each other.
    """

    intervention: Intervention[Tensor]
    layer: str
    call: int
    chosen: Bool[Tensor, "heads queries"]
    weights: Float[Tensor, "batch rows keys"]
    allowed: Bool[Tensor, "batch rows keys"]
    query_mask: Bool[Tensor, "batch rows"]
    output: Float[Tensor, "batch labels"]

    @classmethod
    @torch.inference_mode(False)  # gradients flow through the tensors kept here
    def of(
        cls, model: nn.Module, call: Callable[[], Tensor], target: AttentionTarget
    ) -> "AttentionRows":
        """Run the call three times, and keep its results.

        Raises:
            AttlasError: If the target does not fit the model, or is on padding alone in some text,
                and if the logits are not one distribution for each row of the batch; as of
                `Intervention` and `distribution` too.
        """
        intervention = Intervention(model, call)
        recorded: dict[str, list[tuple[Weights, Allowed] | None]] = {}

        def keep(weights: Weights, allowed: Allowed, layer: str) -> Weights:
            calls = recorded.setdefault(layer, [])
            is_target = target.layer in (None, layer) and target.call in (None, len(calls))
            calls.append((weights, allowed) if is_target else None)
            return weights

        with torch.no_grad():
            output = baseline_output(intervention)
            output_with_change(intervention, keep)
        layer = _layer(target, list(recorded))
        number = _call(target, len(recorded[layer]), layer)
        attention_map = recorded[layer][number]
        assert attention_map is not None  # `_layer` and `_call` chose what the target wanted
        weights, allowed = attention_map
        selected_rows = target.rows(weights.shape[1], weights.shape[2], layer)
        if output.ndim != 2 or len(output) != len(weights):
            raise AttlasError(
                f"logits of shape (batch, labels), batch = {len(weights)}",
                f"shape {tuple(output.shape)}",
                "return those of one position of each text, such as model(**batch).logits[:, -1]",
            )
        dtype = torch.promote_types(weights.dtype, torch.float32)
        allowed = allowed.expand_as(weights)
        query_mask = _query_mask(allowed, target)[:, selected_rows]
        _check_queries(query_mask, allowed, layer)
        rows = weights[:, selected_rows].to(dtype)
        return cls(
            intervention=intervention,
            layer=layer,
            call=number,
            chosen=selected_rows,
            weights=rows,
            allowed=allowed[:, selected_rows],
            query_mask=query_mask,
            output=output,
        )

    @property
    def vector(self) -> Float[Tensor, "batch keys"]:
        """a_j = mean_r α_rj over the rows of the target: the weight of a key."""
        count = self.query_mask.sum(1, keepdim=True).clamp(min=1)
        return (self.weights * self.query_mask[..., None]).sum(1) / count

    @property
    def visible(self) -> Bool[Tensor, "batch keys"]:
        """Which keys any row of the target may see."""
        return (self.allowed & self.query_mask[..., None]).any(1)

    @property
    def decision(self) -> Float[Tensor, "batch labels"]:
        """1 at the label that is decided for, 0 elsewhere."""
        decided = torch.zeros_like(self.output)
        return decided.scatter(-1, self.output.argmax(-1, keepdim=True), 1.0)

    def output_of(self, weights: Float[Tensor, "batch rows keys"]) -> Float[Tensor, "batch labels"]:
        """The output with these weights in place of the rows'; gradients flow back to them."""
        calls = 0

        def replace_weights(current: Weights, allowed: Allowed, layer: str) -> Weights:
            nonlocal calls
            if layer != self.layer:
                return current
            calls += 1
            if calls != self.call + 1:
                return current
            new_weights = current.clone()
            new_weights[:, self.chosen] = weights.to(current.dtype)
            return new_weights

        return output_with_change(self.intervention, replace_weights)

    def flipped(self, output: Float[Tensor, "batch labels"]) -> Bool[Tensor, " batch"]:
        """Return True if this output decides for another label."""
        return output.argmax(-1) != self.output.argmax(-1)

    def without(self, erased: Bool[Tensor, "batch keys"]) -> Float[Tensor, "batch rows keys"]:
        """α_rj / Σ_kept α_rk · Σ α_rk on the keys that are kept, 0 on the erased ones.

        A row without any key left reads zeros; a row of padding stays as it is.
        """
        remaining = self.weights.masked_fill(erased[:, None], 0.0)
        total = self.weights.sum(-1, keepdim=True)
        sum_left = remaining.sum(-1, keepdim=True)
        new_weights = torch.where(sum_left > 0, remaining / sum_left, 0.0) * total
        return torch.where(self.query_mask[..., None], new_weights, self.weights)

    def gradients(
        self, labels: Int[Tensor, " batch"] | None = None
    ) -> Float[Tensor, "batch rows keys"]:
        """∂ p(y) / ∂ α_rj, y one of the labels of each example; None = that which is decided for.

        The other weights of the map stay as they are; those of later layers move with what they
        read. 0 on keys that the row does not see, which can get no weight, and in rows of padding.
        """
        with gradients_enabled():
            weights = self.weights.clone().requires_grad_()
            output = self.output_of(weights)
            chosen = self.decision
            if labels is not None:
                chosen = F.one_hot(labels, output.shape[-1]).to(output)
            decided = (output * chosen).sum()
            counts = self.allowed & self.query_mask[..., None]
            return weight_gradient(decided, weights).masked_fill(~counts, 0.0)


def weight_gradient(
    value: Float[Tensor, ""], weights: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """∂ value / ∂ weights; no other gradient is touched.

    Raises:
        AttlasError: If the value does not come from the weights by steps with a gradient.
    """
    gradients = (
        torch.autograd.grad(value, weights, allow_unused=True)[0] if value.requires_grad else None
    )
    if gradients is None:
        raise AttlasError(
            "an output that has a gradient with respect to the weights",
            "one that has none",
            "leave torch.no_grad() and .detach() out of the call",
        )
    return gradients


def _layer(target: AttentionTarget, layers: list[str]) -> str:
    if target.layer is None and len(layers) == 1:
        return layers[0]
    if target.layer is None or target.layer not in layers:
        raise AttlasError(
            f"one of the layers {layers}",
            "none" if target.layer is None else repr(target.layer),
            "name it: AttentionTarget(layer=…)",
        )
    return target.layer


def _call(target: AttentionTarget, calls: int, layer: str) -> int:
    if target.call is None and calls == 1:
        return 0
    if target.call is None or not 0 <= target.call < calls:
        raise AttlasError(
            f"one of the {calls} calls of layer {layer!r}, from 0",
            "none" if target.call is None else str(target.call),
            "choose it: AttentionTarget(call=…)",
        )
    return target.call


def _query_mask(
    allowed: Bool[Tensor, "batch heads queries keys"], target: AttentionTarget
) -> Bool[Tensor, "batch heads queries"]:
    """Which queries are at a key that some query sees; all queries in cross-attention."""
    queries, num_keys = allowed.shape[2:]
    if target.cross_attention or queries != num_keys:
        return torch.ones_like(allowed[..., 0])
    return allowed.flatten(1, 2).any(1)[:, None].expand(allowed.shape[:3])


def _check_queries(
    query_mask: Bool[Tensor, "batch rows"],
    allowed: Bool[Tensor, "batch heads queries keys"],
    layer: str,
) -> None:
    """Raise `AttlasError` for a text that has tokens, but none in the target."""
    without_query = allowed.flatten(1).any(1) & ~query_mask.any(1)
    if bool(without_query.any()):
        raise AttlasError(
            f"a query of a token in every text, in layer {layer!r}",
            f"padding alone in text {int(without_query.int().argmax())}",
            "choose other queries, pad on the other side, or say "
            "AttentionTarget(cross_attention=True) where the map "
            "does not look at itself",
        )

"""What masks hide, and how they fail."""

from collections.abc import Iterator

import torch

import attlas
from attlas.lab.experiment import Claim, Context, Experiment, Measurement
from attlas.lab.sources import chapter_4, chapter_17, self_attention
from attlas.lab.verdict import All, AtLeast, AtMost

LEAK = "largest change of an output by a hidden input"
WEIGHT, MIXED = "largest weight on a hidden key", "share of pairs whose visibility is wrong"
FINITE = "share of outputs that are finite"
REFUSED = "torch refuses the number with a RuntimeError (1: yes)"


def measure_masks(context: Context) -> Iterator[Measurement]:
    """Perturb what is hidden; hide with finite numbers; broadcast a mask along the wrong axis."""
    generator = torch.Generator().manual_seed(context.seed)
    batch, heads, length, dim = 4, 4, context.settings["length"], 16

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    query, key, value = (draw(batch, heads, length, dim) for _ in range(3))
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    count = torch.randint(2, length, (batch,), generator=generator)
    padding = (torch.arange(length) < count[:, None])[:, None, None, :]
    for name, mask in (("causal", causal), ("padding", padding)):
        output = attlas.scaled_dot_product_attention(query, key, value, mask)
        change = 0.0
        visible = mask.expand(batch, 1, length, length)
        for position in range(length):
            noise = torch.zeros_like(key)
            noise[:, :, position] = 100.0
            moved = attlas.scaled_dot_product_attention(query, key + noise, value + noise, mask)
            difference = (moved - output).abs().amax(-1)
            hidden = ~visible[..., position].expand(batch, heads, length)
            change = max(change, difference[hidden].max().item() if hidden.any() else 0.0)
        yield Measurement(LEAK, change, {"mask": name})
    # The mask (batch, 1, 1, keys) that is called causal.
    yield Measurement(
        MIXED,
        (padding.expand(batch, 1, length, length) != causal).double().mean().item(),
        {"mask": "(batch, 1, 1, keys) taken for causal"},
    )
    # A mask (batch, queries, keys) on scores (batch, heads, queries, keys), as torch broadcasts.
    own = causal & padding.expand(batch, 1, length, length)[:, 0]
    wrong = own.expand(batch, heads, length, length) != own[:, None]
    yield Measurement(
        MIXED, wrong.double().mean().item(), {"mask": "(batch, queries, keys), batch = heads"}
    )
    # −1e9 and −1e4 for hidden keys, where scores are of this size.
    for bias in (-1e4, -1e9):
        for size in (1.0, 1e4):
            scores = size * draw(length, length)
            weights = torch.where(causal, scores, scores + bias).softmax(-1)
            yield Measurement(
                WEIGHT,
                weights[~causal].max().item(),
                {"bias": bias, "size of the scores": size},
            )
    half = torch.zeros(length, length, dtype=torch.float16)
    for name, bias in (("−1e9", -1e9), ("−∞", -torch.inf)):
        hidden = torch.zeros(length, length, dtype=torch.bool)
        hidden[0] = True  # a row of nothing but hidden keys
        where = {"bias in half precision": name}
        try:
            weights = half.masked_fill(hidden, bias).softmax(-1)
        except RuntimeError:  # torch refuses a number that half precision does not have
            yield Measurement(REFUSED, 1.0, where)
        else:
            yield Measurement(REFUSED, 0.0, where)
            yield Measurement(FINITE, weights.isfinite().double().mean().item(), where)
    nothing = torch.zeros(length, length, dtype=torch.bool)
    output = attlas.scaled_dot_product_attention(query, key, value, nothing)
    yield Measurement(FINITE, output.isfinite().double().mean().item(), {"row": "all hidden"})


EXPERIMENTS = (
    Experiment(
        name="masks",
        title="What masks hide, and how they fail",
        method="Every hidden position is moved by 100, and the outputs that must not see it are "
        "compared. Masks of finite numbers are tried with scores of several sizes and in half "
        "precision. Masks of the shapes in the texts are broadcast as torch does.",
        measure=measure_masks,
        settings={"quick": {"length": 12}, "full": {"length": 48}},
        seeds={"quick": 3, "full": 5},
        deterministic=(FINITE, REFUSED),
        claims=(
            Claim(
                "A causal mask leaks nothing from later positions, and a padding mask nothing from "
                "padding.",
                chapter_17("2"),
                All(AtMost(LEAK, 0.0, {"mask": "causal"}), AtMost(LEAK, 0.0, {"mask": "padding"})),
                "Any change at all.",
            ),
            Claim(
                "A mask of shape (batch, 1, 1, keys) can be causal.",
                self_attention("5"),
                AtMost(MIXED, 0.0, {"mask": "(batch, 1, 1, keys) taken for causal"}),
                "A pair of a query and a key that is hidden, or seen, by mistake.",
            ),
            Claim(
                "A mask (batch, queries, keys) on scores (batch, heads, queries, keys) hides by "
                "text.",
                chapter_4("4.6.3"),
                AtMost(MIXED, 0.0, {"mask": "(batch, queries, keys), batch = heads"}),
                "A pair of a query and a key that is hidden, or seen, by mistake.",
            ),
            Claim(
                "−1e9 in place of −∞ hides a key.",
                self_attention("5"),
                All(
                    AtMost(WEIGHT, 1e-9, {"bias": -1e9, "size of the scores": 1.0}),
                    AtMost(WEIGHT, 1e-9, {"bias": -1e9, "size of the scores": 1e4}),
                    AtMost(REFUSED, 0.0, {"bias in half precision": "−1e9"}),
                ),
                "A hidden key with weight, or half precision that refuses the number.",
                revised="the last part asked for outputs that are finite, and a RuntimeError of "
                "torch counted as outputs that are not. Now it asks whether torch refuses the "
                "number.",
            ),
            Claim(
                "−1e4 in place of −∞ hides a key.",
                self_attention("5"),
                All(
                    AtMost(WEIGHT, 1e-9, {"bias": -1e4, "size of the scores": 1.0}),
                    AtMost(WEIGHT, 1e-9, {"bias": -1e4, "size of the scores": 1e4}),
                ),
                "A hidden key with weight where scores are large.",
            ),
            Claim(
                "With −∞ every output is finite.",
                chapter_4("4.6.3"),
                AtLeast(FINITE, 1.0, {"bias in half precision": "−∞"}),
                "A row of nothing but hidden keys that is a number.",
            ),
        ),
    ),
)

"""One head, several and many at equal width."""

from collections.abc import Iterator

import torch

import attlas
from attlas.analysis import diversity, head_ablation, head_divergences
from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Plot, Published, Source
from attlas.lab.sources import chapter_4, chapter_17
from attlas.lab.trainings import (
    SMALL_TRANSFORMER,
    ForcedBatch,
    forced_batch,
    recipe_of,
    score,
    toy_settings,
    trained,
)
from attlas.lab.verdict import ONE_TEST, Alike, AtLeast, Difference, Improvable
from attlas.models import SequenceToSequence, TransformerConfig, build

TOKENS, NUMBERS = "token accuracy", "parameters"
DIVERGENCE = "mean Jensen–Shannon divergence of the heads of a layer in nats"
FREE = "share of heads that cost less than 1 point of accuracy when they are taken out"
HEADS = (1, 4, 16)


def measure_heads(context: Context) -> Iterator[Measurement]:
    """Train with each number of heads; compare and remove those of the model with four."""
    s = context.settings
    for heads in HEADS:
        settings = [
            *toy_settings("reverse", (s["length"], s["length"]), s["updates"]),
            *s["recipe"],
            f"model.num_heads={heads}",
        ]
        run = trained(context, f"{heads}", "reverse", settings)
        model = run.model()
        total = sum(parameter.numel() for parameter in model.parameters())
        yield Measurement(NUMBERS, float(total), {"heads": heads})
        yield Measurement(TOKENS, score(run).token_accuracy, {"heads": heads})
        if heads != 4:
            continue
        batch = forced_batch(run, s["texts"])
        torch.manual_seed(context.seed)
        config = recipe_of(context, "reverse", settings).model
        assert isinstance(config, TransformerConfig)
        fresh = build(config, len(run.vocabularies().source), len(run.vocabularies().target))
        for name, compared in (("trained", model), ("untrained", fresh.eval())):
            yield Measurement(DIVERGENCE, divergence_of_heads(compared, batch), {"model": name})
        ablated = head_ablation(model, lambda b=batch, m=model: b.accuracy(m))  # type: ignore[misc]
        free = sum(head.cost < 0.01 for head in ablated.heads) / len(ablated.heads)
        yield Measurement(FREE, free, {"heads": heads})


def divergence_of_heads(model: SequenceToSequence, batch: ForcedBatch) -> float:  # type: ignore[type-arg]
    """The mean over all layers of how much their heads differ."""
    with attlas.observe(model) as trace:
        batch.logits(model)
    found = [diversity(head_divergences([attention_map])) for attention_map in trace.values()]
    return sum(found) / len(found)


_VASWANI = Source("Vaswani et al., 2017", "table 3, rows A", read=True)
_VOITA = Source("Voita et al., 2019", "abstract", read=True)
EXPERIMENTS = (
    Experiment(
        name="heads",
        title="One head, several and many at equal width",
        method="Two-layer Transformers of width 64 learn to reverse, with 1, 4 "
        "and 16 heads. The heads of the model with four are compared with those of the same model "
        "before its training. Each of them is then taken out alone.",
        measure=measure_heads,
        settings={
            "quick": {"recipe": SMALL_TRANSFORMER, "length": 10, "updates": 100, "texts": 100},
            "full": {"recipe": SMALL_TRANSFORMER, "length": 10, "updates": 400, "texts": 100},
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "A model of several heads has as many parameters as one of one head.",
                chapter_17("3"),
                Alike(NUMBERS, {"heads": 16}, {"heads": 1}),
                "Any difference.",
                revised=ONE_TEST,
            ),
            Claim(
                "Several heads learn more than one head of the same width.",
                _VASWANI,
                Improvable(
                    Difference(TOKENS, {"heads": 4}, {"heads": 1}, 0.01), TOKENS, 0.98, {"heads": 1}
                ),
                "One head that is within 1 point of four.",
                (
                    Published("BLEU, 1 head", 24.9, _VASWANI),
                    Published("BLEU, 8 heads", 25.8, _VASWANI),
                ),
                revised="it is not judged any more where one head is right on more than 98 % of "
                "tokens, so that none can be better.",
                judged_at=("full",),
            ),
            Claim(
                "Too many heads learn less again.",
                _VASWANI,
                Difference(TOKENS, {"heads": 4}, {"heads": 16}, 0.01),
                "Sixteen heads that are within 1 point of four.",
                (
                    Published("BLEU, 8 heads", 25.8, _VASWANI),
                    Published("BLEU, 16 heads", 25.8, _VASWANI),
                    Published("BLEU, 32 heads", 25.4, _VASWANI),
                ),
                judged_at=("full",),
            ),
            Claim(
                "Training makes the heads of a layer look at different things.",
                chapter_4("4.6.4"),
                Difference(DIVERGENCE, {"model": "trained"}, {"model": "untrained"}, 0.05),
                "Heads that differ after the training as little as before it.",
                judged_at=("full",),
            ),
            Claim(
                "Most heads can be taken out, one at a time, at almost no cost.",
                _VOITA,
                AtLeast(FREE, 0.5, {"heads": 4}),
                "More than half of the heads that cost 1 point of accuracy or more.",
                (
                    Published(
                        "encoder heads pruned together for 0.15 BLEU", 38 / 48, _VOITA, "38 of 48"
                    ),
                ),
                judged_at=("full",),
            ),
        ),
        plots=(Plot(TOKENS, "heads"),),
        deterministic=(NUMBERS,),
    ),
)

"""From one head to sixteen at equal width, on a task that one head has not learnt yet."""

from collections.abc import Iterator

from attlas.analysis import head_ablation
from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Plot, Published, Source
from attlas.lab.experiments.qk_norm import losses_of
from attlas.lab.experiments.several_heads import divergence_of_heads
from attlas.lab.sources import chapter_17
from attlas.lab.trainings import SMALL_TRANSFORMER, forced_batch, score, toy_settings, trained
from attlas.lab.verdict import All, AtLeast, Difference, Improvable

TOKENS, LOSS, NUMBERS = "token accuracy", "loss", "parameters"
DIVERGENCE = "mean Jensen–Shannon divergence of the heads of a layer in nats"
FREE = "share of heads that cost less than 1 point of accuracy when they are taken out"


def measure_more_heads(context: Context) -> Iterator[Measurement]:
    """Train with each number of heads, compare the heads of a layer, and take out each alone."""
    s = context.settings
    for heads in s["heads"]:
        settings = [
            *toy_settings(s["task"], (s["length"], s["length"]), s["updates"]),
            *s["recipe"],
            f"model.num_heads={heads}",
        ]
        run = trained(context, f"{heads}", "reverse", settings)
        model, where = run.model(), {"heads": heads}
        total = sum(parameter.numel() for parameter in model.parameters())
        yield Measurement(NUMBERS, float(total), where)
        yield Measurement(TOKENS, score(run).token_accuracy, where)
        for update, loss in losses_of(run.path).items():
            if (5 * update) % s["updates"] == 0:
                yield Measurement(LOSS, loss, {**where, "fifth": 5 * update // s["updates"]})
        if heads == 1:
            continue
        batch = forced_batch(run, s["texts"])
        yield Measurement(DIVERGENCE, divergence_of_heads(model, batch), where)
        ablated = head_ablation(model, lambda b=batch, m=model: b.accuracy(m))  # type: ignore[misc]
        free = sum(head.cost < 0.01 for head in ablated.heads) / len(ablated.heads)
        yield Measurement(FREE, free, where)


HEADS = (1, 2, 4, 8, 16)
_ONE_LAYER = (
    *(setting for setting in SMALL_TRANSFORMER if "layers" not in setting),
    "model.encoder_layers=1",
    "model.decoder_layers=1",
)
_VASWANI = Source("Vaswani et al., 2017", "table 3, rows A", read=True)
_VOITA = Source("Voita et al., 2019", "abstract", read=True)
EXPERIMENTS = (
    Experiment(
        name="more-heads",
        title="From one head to sixteen, on a task that one head has not learnt yet",
        method="Two-layer Transformers (quick: one layer) of width 64 learn to "
        "sort, with 1, 2, 4, 8 and 16 heads. In the experiment `heads` one head reversed nearly "
        "all tokens, so that more heads had nothing to gain. Here the training ends earlier. The "
        "task and the number of updates were chosen after trainings of one head and of eight with "
        "another seed: they were right on 87 % and 98 % of the tokens. The heads of a layer are "
        "compared on 100 test pairs, and each head is taken out alone.",
        measure=measure_more_heads,
        settings={
            "quick": {
                "recipe": _ONE_LAYER,
                "heads": HEADS,
                "task": "sort",
                "length": 6,
                "updates": 20,
                "texts": 50,
            },
            "full": {
                "recipe": SMALL_TRANSFORMER,
                "heads": HEADS,
                "task": "sort",
                "length": 12,
                "updates": 150,
                "texts": 100,
            },
        },
        seeds={"quick": 2, "full": 2},
        claims=(
            Claim(
                "Two, four and eight heads each learn more than one head of the same width.",
                _VASWANI,
                Improvable(
                    All(
                        *(
                            Difference(TOKENS, {"heads": heads}, {"heads": 1}, 0.01)
                            for heads in (2, 4, 8)
                        )
                    ),
                    TOKENS,
                    0.98,
                    {"heads": 1},
                ),
                "One head that is within 1 point of two, of four or of eight.",
                (
                    Published("BLEU, 1 head", 24.9, _VASWANI),
                    Published("BLEU, 8 heads", 25.8, _VASWANI),
                ),
                judged_at=("full",),
            ),
            Claim(
                "Sixteen heads learn less than eight.",
                _VASWANI,
                Difference(TOKENS, {"heads": 8}, {"heads": 16}, 0.01),
                "Sixteen heads that are within 1 point of eight.",
                (
                    Published("BLEU, 8 heads", 25.8, _VASWANI),
                    Published("BLEU, 16 heads", 25.8, _VASWANI),
                    Published("BLEU, 32 heads", 25.4, _VASWANI),
                ),
                judged_at=("full",),
            ),
            Claim(
                "Trained heads of a layer look at different things, however many there are.",
                chapter_17("3"),
                All(*(AtLeast(DIVERGENCE, 0.1, {"heads": heads}) for heads in HEADS[1:])),
                "A number of heads whose mean divergence is below 0.1 nats.",
                judged_at=("full",),
            ),
            Claim(
                "Half of the heads can be taken out, one at a time, at almost no cost, however "
                "many there are.",
                _VOITA,
                All(*(AtLeast(FREE, 0.5, {"heads": heads}) for heads in HEADS[1:])),
                "A number of heads of which more than half cost 1 point of accuracy or more.",
                (
                    Published(
                        "encoder heads pruned together for 0.15 BLEU", 38 / 48, _VOITA, "38 of 48"
                    ),
                ),
                judged_at=("full",),
            ),
        ),
        plots=(Plot(TOKENS, "heads"), Plot(DIVERGENCE, "heads"), Plot(FREE, "heads")),
        deterministic=(NUMBERS,),
    ),
)

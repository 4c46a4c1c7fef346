"""What the attention of trained toys looks at, where the right place is known."""

from collections.abc import Iterator
from math import nan

import torch

import attlas
from attlas.lab.experiment import (
    AttentionExample,
    Claim,
    Context,
    Experiment,
    Measurement,
    Published,
)
from attlas.lab.sources import chapter_4, lesson
from attlas.lab.trainings import (
    SMALL_RECURRENT,
    forced_batch,
    forced_example,
    toy_settings,
    trained,
)
from attlas.lab.verdict import All, AtLeast, Difference
from attlas.recording import permuted, uniform

ALIGNED = "share of outputs whose largest weight is on the symbol that they come from"
SURE = "the same share, of the outputs whose largest weight is above 0.5"
ENTROPY, ACCURACY = "entropy in nats", "token accuracy, teacher-forced"
GREATEST = "mean largest weight"
TASKS = ("copy", "reverse")


def measure_maps(context: Context) -> Iterator[Measurement]:
    """Additive attention on copying and reversal: its maps, and the output without them."""
    s = context.settings
    length = s["length"]
    for task in TASKS:
        settings = [*toy_settings(task, (length, length), s["updates"]), *s["recipe"]]
        run = trained(context, task, task, settings)
        model, batch = run.model(), forced_batch(run, s["texts"])
        with torch.no_grad():
            _, weights = model.forward_with_weights(batch.source, batch.target)
        symbols, end = weights[:, :length], weights[:, length]
        places = torch.arange(length)
        right = symbols.argmax(-1) == (places if task == "copy" else places.flip(0))
        greatest = symbols.amax(-1)
        sure = right[greatest > 0.5].double().mean().item() if (greatest > 0.5).any() else nan
        yield Measurement(ALIGNED, right.double().mean().item(), {"task": task})
        yield Measurement(SURE, sure, {"task": task})
        yield Measurement(GREATEST, greatest.mean().item(), {"task": task})
        for name, rows in (("symbols", symbols), ("end", end)):
            entropy = torch.special.entr(rows).sum(-1).mean().item()
            yield Measurement(ENTROPY, entropy, {"task": task, "output": name})
        ways = {
            "learned": lambda weights, allowed, layer: weights,
            "uniform": uniform,
            "permuted": permuted(context.seed),
        }
        for name, change in ways.items():
            with attlas.intervene(model, change):
                yield Measurement(ACCURACY, batch.accuracy(model), {"task": task, "weights": name})


def toy_examples(context: Context) -> Iterator[AttentionExample]:
    """The map of each task, on the first texts of its test set."""
    s = context.settings
    for task in TASKS:
        settings = [*toy_settings(task, (s["length"], s["length"]), s["updates"]), *s["recipe"]]
        run = trained(context, task, task, settings)
        caption = f"A recurrent model with additive attention, on the task {task}."
        yield forced_example(run, task, caption)


def _both(weights: str) -> All:
    """The weights in place of the learned ones cost at most 5 points, in both tasks."""
    return All(
        *(
            Difference(
                ACCURACY, {"task": t, "weights": weights}, {"task": t, "weights": "learned"}, -0.05
            )
            for t in TASKS
        )
    )


EXPERIMENTS = (
    Experiment(
        name="toy-maps",
        title="Where trained attention looks, where the right place is known",
        method="A GRU with additive attention learns to copy and to reverse. Each output comes "
        "from one known place of the input. The weights are read while the model is fed with the "
        "right tokens. They are then replaced by uniform ones, or permuted.",
        measure=measure_maps,
        examples=toy_examples,
        settings={
            "quick": {"recipe": SMALL_RECURRENT, "length": 8, "updates": 250, "texts": 200},
            "full": {"recipe": SMALL_RECURRENT, "length": 20, "updates": 2000, "texts": 500},
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "Attention aligns each output with the input that it comes from.",
                lesson("Attention as interpretability"),
                All(*(AtLeast(ALIGNED, 0.9, {"task": task}) for task in TASKS)),
                "A map that points elsewhere for more than one output in ten.",
                (
                    Published(
                        "largest weight of a drawn map, typed in",
                        0.85,
                        lesson("Attention as interpretability"),
                        measured=False,
                    ),
                ),
            ),
            Claim(
                "A large weight means a clear correspondence.",
                chapter_4("4.4.2"),
                All(*(AtLeast(SURE, 0.95, {"task": task}) for task in TASKS)),
                "Weights above 0.5 that are on the wrong symbol in more than one case in twenty.",
                (
                    Published(
                        "mean largest weight, typed in", 0.7267, chapter_4("4.4.2"), measured=False
                    ),
                ),
            ),
            Claim(
                "Attention is sharper at the end of a sentence than before it.",
                chapter_4("4.4.2"),
                All(
                    *(
                        Difference(
                            ENTROPY,
                            {"task": task, "output": "symbols"},
                            {"task": task, "output": "end"},
                        )
                        for task in TASKS
                    )
                ),
                "An end whose weights are spread out more than those of the symbols.",
                (
                    Published("printed entropy of the end", 0.412, chapter_4("4.4.2")),
                    Published("printed mean entropy", 0.8277, chapter_4("4.4.2")),
                ),
            ),
            Claim(
                "The weights of a trained model can be permuted at no cost.",
                lesson("Attention as interpretability"),
                _both("permuted"),
                "A task in which permuted weights cost more than 5 points.",
            ),
            Claim(
                "Uniform weights in place of the learned ones cost nothing.",
                lesson("Attention as interpretability"),
                _both("uniform"),
                "A task in which uniform weights cost more than 5 points.",
                revised="the claim was about models that are trained with uniform weights, of "
                "which these measurements say nothing. The rule is the same.",
            ),
        ),
    ),
)

"""The norm of queries and keys: scores with and without it, at rates that are too high."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from statistics import fmean

from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Plot, Published, Source
from attlas.lab.experiments.logits import ENTROPY, LARGEST, RECIPE, TOKENS
from attlas.lab.trainings import score, toy_settings, trained
from attlas.lab.verdict import All, AtMost, Difference, Provided, Ratio
from attlas.monitoring.history import head_statistics_of, read_history

LOSS = "loss"
RISE = "largest loss over the least before it"
UPDATES = "updates, or all of them where it never happens"
# A rise of the loss by 5 % is no divergence: trainings that end with every token right have it too.
FALLS, DIVERGES = "the entropy is 0.75 of the first", "the loss is 1.05 of its least"
RATES = {"usual": 2e-3, "ten times": 2e-2, "fifty times": 1e-1}
NO, YES = "none", "qk_norm"


def measure_qk_norm(context: Context) -> Iterator[Measurement]:
    """Train with and without the norm at each rate, and read all heads from time to time."""
    s = context.settings
    for norm in (NO, YES):
        for (name, rate), count in zip(s["rates"].items(), s["readings"][norm], strict=True):
            settings = [
                *toy_settings("copy", (s["length"], s["length"]), s["updates"]),
                *s["recipe"],
                f"model.qk_norm={str(norm == YES).lower()}",
                f"training.learning_rate={rate}",
                f"training.log_every={s['updates'] // 20}",
                f"training.watch.every={s['updates'] // count}",
            ]
            run = trained(context, f"{norm}-{name.replace(' ', '-')}", "copy", settings)
            where = {"norm": norm, "rate": name}
            yield Measurement(TOKENS, score(run).token_accuracy, where)
            yield from watched(run.path, s["updates"], where)


def watched(
    folder: Path, updates: int, where: Mapping[str, str | int | float]
) -> Iterator[Measurement]:
    """What was logged of a training: scores, entropy and loss, and when they moved."""
    entropies: dict[int, float] = {}
    for record in read_history(folder / "watch.jsonl"):
        heads = head_statistics_of(record)
        entropies[record["step"]] = fmean(
            head.normalized_entropy for head in heads if head.normalized_entropy is not None
        )
        if record["step"] > 1 and (10 * record["step"]) % updates:
            continue  # the first update is tenth 0
        place = {**where, "tenth": 10 * record["step"] // updates}
        largest = max(head.max_logit for head in heads if head.max_logit is not None)
        yield Measurement(LARGEST, largest, place)
        yield Measurement(ENTROPY, entropies[record["step"]], place)
    losses = losses_of(folder)
    for update, loss in losses.items():
        if (10 * update) % updates == 0:
            yield Measurement(LOSS, loss, {**where, "tenth": 10 * update // updates})
    rises = rises_of(list(losses.values()))
    yield Measurement(RISE, max(rises), where)
    first = next(iter(entropies.values()))
    fallen = [step for step, entropy in entropies.items() if entropy <= 0.75 * first]
    risen = [step for step, rise in zip(losses, rises, strict=True) if rise >= 1.05]
    for what, steps in ((FALLS, fallen), (DIVERGES, risen)):
        yield Measurement(UPDATES, float(min(steps, default=updates)), {**where, "until": what})


def losses_of(folder: Path) -> dict[int, float]:
    """The loss by update, the mean since the line before."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    return {one["update"]: one["loss"] for one in events if one["event"] == "trained"}


def rises_of(losses: Sequence[float]) -> list[float]:
    """Each loss over the least so far, itself included.

    Example:
        >>> rises_of([4.0, 2.0, 3.0])
        [1.0, 1.0, 1.5]
    """
    return [loss / least for loss, least in zip(losses, accumulate(losses, min), strict=True)]


def _at(norm: str, rate: str, tenth: int | None = None) -> dict[str, str | int]:
    where: dict[str, str | int] = {"norm": norm, "rate": rate}
    return where if tenth is None else {**where, "tenth": tenth}


_ONE_LAYER = (
    *(setting for setting in RECIPE if "layers" not in setting),
    "model.encoder_layers=1",
    "model.decoder_layers=1",
)
_HENRY = Source("Henry et al., 2020", "section 3", read=False)
_DEHGHANI = Source("Dehghani et al., 2023 (ViT-22B)", "section 2 and figure 1", read=False)
_MARIN = Source("Marin 32B Retrospective, 2025", "“Phase 3: Switch to QK-Norm”", read=True)
_KIMI = Source("Kimi K2, 2025", "section 2.1", read=False)
_ZHAI = Source("Zhai et al., 2023", "section 3", read=False)
EXPERIMENTS = (
    Experiment(
        name="qk-norm",
        title="The norm of queries and keys",
        method="Two-layer Transformers (quick: one layer) learn to copy, with and "
        "without an RMSNorm of the queries and keys of each head (`model.qk_norm`). The norm has "
        "learned gains. They do so at a usual learning rate, at ten times and at fifty times it; "
        "the norm of the gradient is bounded in all. The heads are read at the first update (tenth "
        "0) and after each fifth, at fifty times the rate without the norm after each twentieth. A "
        "head has 16 numbers, so with gains of 1 no score exceeds √16 = 4. The rates were chosen "
        "after a training with another seed, of which the loss alone was read. Two claims are "
        "about a loss that is 1.05 of its least so far. At first they said that it diverges. It "
        "need not: some trainings at ten times the rate had such a rise, and were right on all "
        "tokens at their end. The rules and the numbers are the same.",
        measure=measure_qk_norm,
        settings={
            "quick": {
                "recipe": _ONE_LAYER,
                "rates": RATES,
                "length": 8,
                "updates": 60,
                "readings": {"none": (5, 5, 5), "qk_norm": (5, 5, 5)},
            },
            "full": {
                "recipe": RECIPE,
                "rates": RATES,
                "length": 8,
                "updates": 200,
                "readings": {"none": (5, 5, 20), "qk_norm": (5, 5, 5)},
            },
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "QK-norm bounds the largest scores by √d.",
                _HENRY,
                All(
                    *(
                        AtMost(LARGEST, 4.0, _at(YES, rate, 10))
                        for rate in ("usual", "ten times", "fifty times")
                    )
                ),
                "Gains that are learned and let scores above 4.",
            ),
            Claim(
                "With QK-norm the largest scores stay below 100 at ten times the rate.",
                _KIMI,
                AtMost(LARGEST, 100.0, _at(YES, "ten times", 10)),
                "Scores above 100.",
                (
                    Published(
                        "τ, above which QK-clip shrinks queries and keys",
                        100,
                        _KIMI,
                        measured=False,
                    ),
                ),
            ),
            Claim(
                "At ten times the rate the largest scores are smaller with QK-norm than without.",
                _DEHGHANI,
                Ratio(LARGEST, _at(NO, "ten times", 10), _at(YES, "ten times", 10), 2.0),
                "Scores that are more than half as large.",
            ),
            Claim(
                "With QK-norm a training at ten times the rate learns as much as at the usual one.",
                _MARIN,
                Provided(
                    Difference(TOKENS, _at(YES, "ten times"), _at(YES, "usual"), -0.05),
                    TOKENS,
                    0.9,
                    _at(YES, "usual"),
                ),
                "A model that is more than 5 points worse.",
            ),
            Claim(
                "Where the loss rises by 5 % without QK-norm, a training with it learns more.",
                _MARIN,
                Provided(
                    Difference(TOKENS, _at(YES, "fifty times"), _at(NO, "fifty times"), 0.1),
                    RISE,
                    1.05,
                    _at(NO, "fifty times"),
                ),
                "A model with the norm that is at most 10 points better at fifty times the rate.",
                judged_at=("full",),
            ),
            Claim(
                "The entropy falls before the loss rises by 5 %.",
                _ZHAI,
                Provided(
                    Difference(
                        UPDATES,
                        {**_at(NO, "fifty times"), "until": DIVERGES},
                        {**_at(NO, "fifty times"), "until": FALLS},
                        10.0,
                    ),
                    RISE,
                    1.05,
                    _at(NO, "fifty times"),
                ),
                "An entropy that is above three quarters of its first when the loss has risen.",
                judged_at=("full",),
            ),
        ),
        plots=(
            Plot(LARGEST, "tenth", "rate", {"norm": NO}),
            Plot(LARGEST, "tenth", "rate", {"norm": YES}),
            Plot(ENTROPY, "tenth", "rate", {"norm": NO}),
            Plot(LOSS, "tenth", "rate", {"norm": NO}),
        ),
    ),
)

"""The largest scores of attention during a training, at a usual rate and at ten times it."""

from collections.abc import Iterator
from statistics import fmean

from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Plot, Source
from attlas.lab.trainings import SMALL_TRANSFORMER, score, toy_settings, trained
from attlas.lab.verdict import All, Difference, Provided, Ratio
from attlas.monitoring.history import head_statistics_of, read_history

TOKENS = "token accuracy"
LARGEST = "largest score of any head"
ENTROPY = "mean entropy over that of even weights"
RATES = {"usual": 2e-3, "ten times": 2e-2}
RECIPE = tuple(setting for setting in SMALL_TRANSFORMER if "learning_rate" not in setting)


def measure_logits(context: Context) -> Iterator[Measurement]:
    """Train at both rates, and read all heads from time to time."""
    s = context.settings
    for name, rate in s["rates"].items():
        settings = [
            *toy_settings("copy", (s["length"], s["length"]), s["updates"]),
            *s["recipe"],
            f"training.learning_rate={rate}",
            f"training.watch.every={s['updates'] // 10}",
        ]
        run = trained(context, name.replace(" ", "-"), "copy", settings)
        yield Measurement(TOKENS, score(run).token_accuracy, {"rate": name})
        for record in read_history(run.path / "watch.jsonl"):
            heads = head_statistics_of(record)
            where = {"rate": name, "tenth": round(10 * record["step"] / s["updates"])}
            largest = [head.max_logit for head in heads if head.max_logit is not None]
            yield Measurement(LARGEST, max(largest), where)
            spread = [one.normalized_entropy for one in heads if one.normalized_entropy is not None]
            yield Measurement(ENTROPY, fmean(spread), where)


def _at(rate: str, tenth: int) -> dict[str, str | int]:
    return {"rate": rate, "tenth": tenth}


_ZHAI = Source("Zhai et al., 2023", "section 3", read=False)
_KIMI = Source("Kimi K2, 2025", "section 2.1", read=False)
EXPERIMENTS = (
    Experiment(
        name="logits",
        title="The largest scores in training",
        method="Two-layer Transformers learn to copy, at a usual learning rate and at "
        "ten times it; the norm of the gradient is bounded in both. The largest score before the "
        "softmax, and the entropy behind it, are read at the first update (tenth 0) and after each "
        "tenth of the training. The norm of queries and keys is in the experiment `qk-norm`.",
        measure=measure_logits,
        settings={
            "quick": {"recipe": RECIPE, "rates": RATES, "length": 12, "updates": 100},
            "full": {"recipe": RECIPE, "rates": RATES, "length": 12, "updates": 300},
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "The largest scores grow in training.",
                _KIMI,
                Ratio(LARGEST, _at("usual", 10), _at("usual", 0), 2.0),
                "Scores that do not double.",
            ),
            Claim(
                "At ten times the rate they grow more.",
                _KIMI,
                Ratio(LARGEST, _at("ten times", 10), _at("usual", 10), 1.5),
                "Scores that are less than 1.5 times as large.",
            ),
            Claim(
                "The entropy falls as they grow.",
                _ZHAI,
                All(
                    Difference(ENTROPY, _at("usual", 0), _at("usual", 10), 0.05),
                    Difference(ENTROPY, _at("ten times", 0), _at("ten times", 10), 0.05),
                ),
                "An entropy that stays within 5 % of its range.",
            ),
            Claim(
                "At ten times the rate the model learns less.",
                _ZHAI,
                Provided(
                    Difference(TOKENS, {"rate": "usual"}, {"rate": "ten times"}, 0.1),
                    TOKENS,
                    0.9,
                    {"rate": "usual"},
                ),
                "A model that is within 10 points.",
            ),
        ),
        plots=(Plot(LARGEST, "tenth", "rate"), Plot(ENTROPY, "tenth", "rate")),
    ),
)

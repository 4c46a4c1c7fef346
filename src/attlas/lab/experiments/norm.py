"""Where the norm stands, and the warm-up of the learning rate."""

from collections.abc import Iterator

from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Published, Source
from attlas.lab.sources import chapter_17
from attlas.lab.trainings import SMALL_TRANSFORMER, score, toy_settings, trained
from attlas.lab.verdict import Difference, Provided, Rule

TOKENS = "token accuracy"


def measure_norm(context: Context) -> Iterator[Measurement]:
    """Deep Transformers with pre-norm and post-norm, with and without a warm-up."""
    s = context.settings
    for norm in ("pre", "post"):
        for warmup in (0, s["warmup"]):
            settings = [
                *toy_settings("copy", (s["length"], s["length"]), s["updates"], warmup=warmup),
                *s["recipe"],
                f"model.encoder_layers={s['layers']}",
                f"model.decoder_layers={s['layers']}",
                f"model.norm={norm}",
            ]
            run = trained(context, f"{norm}-{warmup}", "copy", settings)
            where = {"norm": norm, "warm-up": "yes" if warmup else "no"}
            yield Measurement(TOKENS, score(run).token_accuracy, where)


def _of(norm: str, warmup: str) -> dict[str, str]:
    return {"norm": norm, "warm-up": warmup}


def _learnt(rule: Rule, norm: str) -> Provided:
    """The rule, where the model with that norm learns to copy with a warm-up."""
    return Provided(rule, TOKENS, 0.9, _of(norm, "yes"))


RECIPE = tuple(setting for setting in SMALL_TRANSFORMER if "layers" not in setting)
_XIONG = Source("Xiong et al., 2020", "section 3.2, IWSLT14", read=True)
EXPERIMENTS = (
    Experiment(
        name="norm",
        title="Pre-norm and post-norm, with and without a warm-up",
        method="Transformers learn to copy, with 4 layers on each side. The norm is before each "
        "sublayer (pre) or after each sum (post). The learning rate rises during a warm-up, or "
        "begins at its highest value.",
        measure=measure_norm,
        settings={
            "quick": {"recipe": RECIPE, "layers": 4, "length": 8, "updates": 80, "warmup": 30},
            "full": {"recipe": RECIPE, "layers": 4, "length": 8, "updates": 300, "warmup": 100},
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "A deep Transformer trains more stably with pre-norm than with post-norm.",
                chapter_17("5.1"),
                _learnt(Difference(TOKENS, _of("pre", "no"), _of("post", "no"), 0.1), "pre"),
                "Post-norm that is within 10 points of pre-norm without a warm-up.",
            ),
            Claim(
                "Post-norm needs a warm-up.",
                _XIONG,
                _learnt(Difference(TOKENS, _of("post", "yes"), _of("post", "no"), 0.1), "post"),
                "Post-norm that learns as much without a warm-up.",
                (
                    Published("BLEU, post-norm without a warm-up", 8.45, _XIONG),
                    Published("BLEU, post-norm with a warm-up, about", 34.0, _XIONG),
                ),
            ),
            Claim(
                "Pre-norm needs no warm-up.",
                _XIONG,
                _learnt(Difference(TOKENS, _of("pre", "no"), _of("pre", "yes"), -0.05), "pre"),
                "Pre-norm that learns 5 points more with a warm-up.",
            ),
        ),
    ),
)

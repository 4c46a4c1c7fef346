"""Where the norm stands, and the warm-up of the learning rate."""

from collections.abc import Iterator

from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Published, Source
from attlas.lab.sources import chapter_17
from attlas.lab.trainings import SMALL_TRANSFORMER, score, toy_settings, trained
from attlas.lab.verdict import Difference

TOKENS = "token accuracy"


def measure_norm(context: Context) -> Iterator[Measurement]:
    """Deep Transformers with norms before and behind the sums, with and without a warm-up."""
    s = context.settings
    for norm in ("pre", "post"):
        for warmup in (0, s["warmup"]):
            settings = [
                *toy_settings("copy", (s["length"], s["length"]), s["updates"], warmup=warmup),
                *s["recipe"],
                f"model.norm={norm}",
            ]
            run = trained(context, f"{norm}-{warmup}", "copy", settings)
            where = {"norm": norm, "warm-up": "yes" if warmup else "no"}
            yield Measurement(TOKENS, score(run).token_accuracy, where)


def _of(norm: str, warmup: str) -> dict[str, str]:
    return {"norm": norm, "warm-up": warmup}


# Four layers on each side, as wide as the two of the small Transformer are.
DEEP = (
    *(s for s in SMALL_TRANSFORMER if "layers" not in s),
    "model.encoder_layers=4",
    "model.decoder_layers=4",
)
_XIONG = Source("Xiong et al., 2020", "section 3.1, IWSLT14", read=False)
EXPERIMENTS = (
    Experiment(
        name="norm",
        title="Norms before and behind the sums, with and without a warm-up",
        method="Transformers of four and four layers learn to copy. The norm is before each "
        "sublayer (pre) or behind its sum (post). The learning rate rises during a warm-up, or "
        "begins at its highest value.",
        measure=measure_norm,
        settings={
            "quick": {"recipe": DEEP, "length": 8, "updates": 300, "warmup": 100},
            "full": {"recipe": DEEP, "length": 16, "updates": 2000, "warmup": 400},
        },
        seeds={"quick": 3, "full": 3},
        claims=(
            Claim(
                "A deep Transformer learns more reliably with pre-norm than with post-norm.",
                chapter_17("5.1"),
                Difference(TOKENS, _of("pre", "no"), _of("post", "no"), 0.1),
                "Post-norm that is within 10 points of pre-norm without a warm-up.",
            ),
            Claim(
                "Post-norm needs a warm-up.",
                _XIONG,
                Difference(TOKENS, _of("post", "yes"), _of("post", "no"), 0.1),
                "Post-norm that learns as much without a warm-up.",
                (Published("BLEU, post-norm without a warm-up", 8.45, _XIONG),),
            ),
            Claim(
                "Pre-norm needs no warm-up.",
                _XIONG,
                Difference(TOKENS, _of("pre", "no"), _of("pre", "yes"), -0.05),
                "Pre-norm that learns 5 points more with a warm-up.",
            ),
        ),
    ),
)

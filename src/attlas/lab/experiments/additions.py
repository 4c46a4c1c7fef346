"""What input feeding, coverage, label smoothing and scheduled sampling buy in translation."""

from collections.abc import Iterator

from attlas.lab.data import parallel_files, spaced_words, tatoeba_pairs
from attlas.lab.experiment import (
    Claim,
    Condition,
    Context,
    Experiment,
    Measurement,
    Published,
    Source,
)
from attlas.lab.experiments.alignment import Gold, bleu_of, ending, looked, sampled
from attlas.lab.trainings import trained
from attlas.lab.verdict import All, Difference, Provided, Rule

BLEU, AER = "BLEU on new pairs", "alignment error rate"
GENERAL = ("model.attention=general", "model.decoder=luong", "training.label_smoothing=0")
ADDITIVE = ("model.attention=additive", "training.label_smoothing=0")
MODELS: dict[str, tuple[str, ...]] = {
    "general": GENERAL,
    "general, input feeding": (*GENERAL, "model.input_feeding=true"),
    "general, label smoothing": (*GENERAL[:2], "training.label_smoothing=0.1"),
    "general, scheduled sampling": (
        *GENERAL,
        "training.scheduled_sampling={kind='linear', slope=0.001, floor=0.5, token='argmax'}",
    ),
    "additive": ADDITIVE,
    "additive, coverage": (*ADDITIVE, "model.coverage=true"),
}


def measure_additions(context: Context) -> Iterator[Measurement]:
    """Train each model on the same pairs for as many updates."""
    s = context.settings
    pairs = [(spaced_words(en), spaced_words(fr, french=True)) for en, fr in tatoeba_pairs("fr")]
    pairs = [pair for pair in pairs if len(pair[0].split()) <= s["most words"]]
    parts = sampled(pairs, context.seed, (s["pairs"], s["held back"]), s["least words"])
    train, valid = (
        parallel_files(context.folder, name, some)
        for name, some in zip(("train", "valid"), parts, strict=True)
    )
    files = (f"data.train={train}", f"data.valid={valid}", f"data.test={valid}")
    gold = Gold.read()
    gold = Gold(gold.pairs[: s["gold"]], gold.references[: s["gold"]])
    lower = [(source.lower(), target.lower()) for source, target in gold.pairs]
    for name, settings in MODELS.items():
        label = name.replace(",", "").replace(" ", "-")
        run = trained(context, label, "multi30k", [*files, *s["recipe"], *settings])
        yield Measurement(BLEU, bleu_of(run), {"model": name})
        if name.startswith("additive"):
            links = [one.links for one in looked(run, lower)]
            yield Measurement(AER, gold.error(links), {"model": name})


def _recipe(updates: int) -> tuple[str, ...]:
    return (
        *ending(updates, "linear"),
        "vocabulary.size=2000",
        "vocabulary.sampling=0",
        "batching.max_tokens=512",
        "model.embed_dim=128",
        "model.hidden_dim=192",
        "model.encoder_hidden_dim=96",
        "model.dropout=0.1",
        "training.learning_rate=4e-3",
        "training.averaging={kind='none'}",
    )


def _with(addition: str, base: str = "general", bound: float = 0.5) -> Difference:
    return Difference(BLEU, {"model": f"{base}, {addition}"}, {"model": base}, bound)


def _learnt(rule: Rule, model: str = "general") -> Provided:
    """The rule, where this model has learnt to translate.

    The model with an addition need not have, where BLEU itself is compared.
    """
    where: Condition = {"model": model}
    return Provided(rule, BLEU, 10.0, where)


_LUONG = Source("Luong et al., 2015", "table 1", read=True)
_VASWANI = Source("Vaswani et al., 2017", "section 5.4 and table 3, row D", read=True)
EXPERIMENTS = (
    Experiment(
        name="additions",
        title="What four additions buy in translation",
        method="GRUs learn to translate English to French with short everyday pairs (Tatoeba), for "
        "as many updates. To Luong's decoder with a general score, input feeding, label smoothing "
        "of 0.1 or scheduled sampling is added. With scheduled sampling the share of right tokens "
        "that are fed falls from 1 to a half. To Bahdanau's decoder with an additive "
        "score, coverage is added. "
        "BLEU is that of pairs that were held back, the alignment error that of the Hansards.",
        measure=measure_additions,
        settings={
            "quick": {
                "pairs": 3000,
                "held back": 20,
                "least words": 4,
                "most words": 12,
                "gold": 10,
                "recipe": _recipe(15),
            },
            "full": {
                "pairs": 30_000,
                "held back": 200,
                "least words": 4,
                "most words": 12,
                "gold": 100,
                "recipe": _recipe(500),
            },
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "Input feeding makes translations better.",
                _LUONG,
                _learnt(_with("input feeding")),
                "A model without input feeding that is within half a BLEU point.",
                (
                    Published("BLEU, without input feeding", 16.8, _LUONG),
                    Published("BLEU, with input feeding", 18.1, _LUONG),
                ),
            ),
            Claim(
                "Label smoothing makes translations better.",
                _VASWANI,
                _learnt(_with("label smoothing", bound=0.2)),
                "A model without label smoothing that is within 0.2 BLEU.",
                (
                    Published("BLEU, no label smoothing", 25.3, _VASWANI),
                    Published("BLEU, label smoothing of 0.1", 25.8, _VASWANI),
                ),
            ),
            Claim(
                "Scheduled sampling makes translations better.",
                Source("Bengio et al., 2015", "section 2", read=False),
                _learnt(_with("scheduled sampling")),
                "Teacher forcing alone that is within half a BLEU point.",
            ),
            Claim(
                "Coverage makes translations and alignments better.",
                Source("Tu et al., 2016", "abstract", read=True),
                _learnt(
                    All(
                        _with("coverage", "additive"),
                        _learnt(
                            Difference(
                                AER, {"model": "additive"}, {"model": "additive, coverage"}, 0.02
                            ),
                            "additive, coverage",
                        ),
                    ),
                    "additive",
                ),
                "A model without coverage that is within half a BLEU point and 2 points of error.",
                revised="alignments were judged wherever the model without coverage had 10 BLEU. "
                "Now the model with coverage must have them, too: it had fewer with a seed.",
            ),
        ),
        needs=("tatoeba", "word-alignment"),
    ),
)

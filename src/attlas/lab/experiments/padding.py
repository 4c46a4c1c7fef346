"""What a missing padding mask costs."""

from collections.abc import Iterator
from pathlib import Path

from attlas._files import write_durably
from attlas.data import Corpus, Pair, SplitName, corpus_of
from attlas.data.sources import ToyData
from attlas.lab.experiment import Claim, Context, Experiment, Measurement
from attlas.lab.sources import chapter_4, lesson
from attlas.lab.trainings import SMALL_RECURRENT, score, toy_settings, trained
from attlas.lab.verdict import Difference, Provided, Rule

TOKENS = "token accuracy"
PADDING = "pad"


def with_padding(text: str, length: int) -> str:
    """The text with a symbol like any other behind it, until it is so long."""
    symbols = text.split()
    return " ".join([*symbols, *[PADDING] * (length - len(symbols))])


def measure_padding(context: Context) -> Iterator[Measurement]:
    """Train on texts of many lengths, with a padding mask and without one."""
    s = context.settings
    shortest, longest = s["lengths"]
    toy = ToyData(
        task="reverse", length=s["lengths"], symbols=16, train=s["pairs"], seed=context.seed
    )
    for mask, lengths in (("yes", (0,)), ("no", (longest, s["padded"]))):
        splits: tuple[SplitName, ...] = ("train", "valid", "test")
        files = {
            split: _written(toy.corpus(split), context.folder / f"{mask}-{split}.tsv", lengths[0])
            for split in splits
        }
        data = ", ".join(f"{split}='{path}'" for split, path in files.items())
        toys = toy_settings("reverse", (shortest, longest), s["updates"])
        settings = [
            *(setting for setting in toys if not setting.startswith("data.")),
            *s["recipe"],
            f"data={{kind='files', {data}}}",
        ]
        run = trained(context, f"mask-{mask}", "reverse", settings)
        for length in lengths:
            test = _with_padding(toy.corpus("test"), length)
            found = score(run, test).token_accuracy
            yield Measurement(TOKENS, found, _of(mask, length or "nothing"))


def _with_padding(corpus: Corpus, length: int) -> Corpus:
    pairs = [Pair(with_padding(pair.source, length), pair.target) for pair in corpus.pairs]
    return corpus_of(pairs, f"{corpus.name}, padded to {length}")


def _written(corpus: Corpus, path: Path, length: int) -> Path:
    lines = [f"{pair.source}\t{pair.target}\n" for pair in _with_padding(corpus, length).pairs]
    write_durably(path, "".join(lines).encode())
    return path.resolve()


def _of(mask: str, length: int | str) -> dict[str, str | int]:
    return {"padding mask": mask, "padded to": length}


def _learnt(rule: Rule) -> Provided:
    """The rule, where one of the models learns to reverse."""
    return Provided(rule, TOKENS, 0.9, _of("yes", "nothing"), _of("no", 12))


EXPERIMENTS = (
    Experiment(
        name="padding",
        title="What a missing padding mask costs",
        method="GRUs with additive attention learn to reverse texts of 4 to 12 symbols. One has a "
        "padding mask. The other has none: behind each text stands padding up to 12 symbols, which "
        "its encoder and its attention read like any symbol. It is then asked about the same "
        "texts with padding up to 12 symbols, and up to 24, as beside a longer text in a batch.",
        measure=measure_padding,
        settings={
            "quick": {
                "recipe": SMALL_RECURRENT,
                "lengths": (4, 12),
                "padded": 24,
                "pairs": 10_000,
                "updates": 150,
            },
            "full": {
                "recipe": SMALL_RECURRENT,
                "lengths": (4, 12),
                "padded": 24,
                "pairs": 20_000,
                "updates": 400,
            },
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "A model learns as much without a padding mask.",
                chapter_4("4.5.1"),
                _learnt(Difference(TOKENS, _of("no", 12), _of("yes", "nothing"), -0.02)),
                "A model without a mask that is more than 2 points worse.",
            ),
            Claim(
                "Without a padding mask the output does not depend on how much padding there is.",
                lesson("Plugging attention into seq2seq"),
                _learnt(Difference(TOKENS, _of("no", 24), _of("no", 12), -0.02)),
                "A text that is reversed worse by more than 2 points with more padding.",
            ),
        ),
    ),
)

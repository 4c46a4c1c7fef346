"""Whatever becomes of a file: the same answer with 0, or an error with 2 that says what is wrong.

Never a traceback, never another answer. The damage is drawn by chance, from a seed; without the
slow tests less of it is drawn.
"""

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attlas.analysis.alignment import read_links, read_reference
from attlas.data import read_conllu, read_labelled_texts, read_pairs
from attlas.errors import AttlasError
from attlas.recording import Trace
from attlas.runs import Run
from support.command_line import called
from support.damaged_files import PLACED, damaged, in_time

FEW, MANY = 6, 80
LONGEST = 8000  # characters of a message, whatever it is about
SOURCE = "1 2 3\n4 5\n0\n7 6 5 4\n"
REVIEWS = "the film was great\na dull plot but lovely\nboring\n"


@pytest.fixture
def times(pytestconfig: pytest.Config) -> int:
    """How often something is damaged; the few are the first of the many."""
    few = pytestconfig.getoption("few") or "not slow" in pytestconfig.getoption("markexpr")
    return FEW if few else MANY


@pytest.fixture
def translating(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run, tmp_path / "run"))


@pytest.fixture
def classifying(labelling: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(labelling, tmp_path / "run"))


def reported(*arguments: object, text: str | None = None) -> tuple[int, str]:
    """The exit code, 0 or 2, and the answer; of an error it is checked that it says something."""
    with in_time():
        code, out, error = called(*arguments, text=text)
    assert code in (0, 2), (arguments, error[-3000:])
    if code == 2:
        assert "attlas: expected " in error or "attlas: " in error, error[-3000:]
        assert "our mistake" not in error
        assert len(error) < LONGEST, error[:3000]
    return code, out if code == 0 else ""


def whiles(path: Path, times: int, seed: str, *, others: Path | None = None) -> Iterator[str]:
    """Of each moment at which the file at this path is damaged, or another thing, what it is."""
    whole, chance = path.read_bytes(), random.Random(seed)
    for _ in range(times):
        name, content = damaged(whole, chance)
        path.write_bytes(content)
        yield name
    for name, placed in PLACED.items():
        path.unlink(missing_ok=True)
        placed(path)
        yield name
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        path.unlink(missing_ok=True)
    if others is not None:
        path.write_bytes(others.read_bytes())
        yield "that of another run"
    path.write_bytes(whole)


OF_RUN = ("tokenizer.json", "best", "provenance.json", "checkpoints", "metrics.jsonl", "last")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*OF_RUN, "config.toml"])
def test_a_damaged_run_translates_as_ever_or_says_what_is_wrong(
    translating: Path, blind_run: Path, times: int, name: str
) -> None:
    code, right = reported("translate", translating, text=SOURCE)
    assert code == 0
    assert len(right.splitlines()) == 4
    path = translating / name
    if name == "checkpoints":
        path = Run(translating).store.path(str(Run(translating).store.named("best")))
    other = blind_run / name
    decoding = Run(translating).table("decoding")
    for what in whiles(path, times, name, others=other if other.is_file() else None):
        code, out = reported("translate", translating, text=SOURCE)
        free = (
            code == 0 and name == "config.toml" and Run(translating).table("decoding") != decoding
        )
        assert code == 2 or free or out == right, what
        reported("inspect", translating)


@pytest.mark.parametrize("name", ["labels.json", "tokenizer.json", "config.toml", "best"])
def test_a_damaged_classifier_answers_as_ever_or_says_what_is_wrong(
    classifying: Path, run: Path, times: int, name: str
) -> None:
    code, right = reported("classify", classifying, text=REVIEWS)
    assert code == 0
    other = run / name
    for what in whiles(
        classifying / name, times, f"labels {name}", others=other if other.is_file() else None
    ):
        code, out = reported("classify", classifying, text=REVIEWS)
        assert code == 2 or out == right, what
        reported("inspect", classifying)


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "last", "provenance.json", "metrics.jsonl", "config.toml"]
)
def test_a_damaged_run_goes_on_as_ever_or_says_what_is_wrong(
    translating: Path, tmp_path: Path, name: str
) -> None:
    """A training that is over tells its outcome again; the weights stay as they are."""
    right = _bits(translating)
    kept = Path(shutil.copytree(translating, tmp_path / "kept"))
    for what in whiles(translating / name, 4, f"train {name}"):
        code, _ = reported("train", translating)
        if code == 0:
            assert _bits(translating) == right, what
        for file in kept.rglob("*"):  # a training that goes on writes the files anew
            there = translating / file.relative_to(kept)
            if file.is_file() and there.name != name:
                shutil.copy(file, there)


def _bits(run: Path) -> dict[str, bytes]:
    model = Run(run).model("last")
    return {name: tensor.numpy().tobytes() for name, tensor in model.state_dict().items()}


def test_every_flipped_bit_of_a_trace_is_an_error_or_changes_nothing(
    two_texts: Path, tmp_path: Path, times: int
) -> None:
    path, chance = tmp_path / "trace.safetensors", random.Random(3)
    whole, right = two_texts.read_bytes(), _weights(Trace.load(two_texts))
    places = chance.sample(range(8 * len(whole)), min(8 * len(whole), 180 * times))
    for place in places:
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        try:
            assert _weights(Trace.load(path)) == right, place
        except AttlasError as error:
            assert str(path) in str(error)  # noqa: PT017


def test_a_damaged_trace_is_shown_as_ever_or_refused(
    two_texts: Path, tmp_path: Path, times: int
) -> None:
    path = Path(shutil.copy(two_texts, tmp_path / "trace.safetensors"))
    right = reported("inspect", path)
    for what in whiles(path, 3 * times, "trace"):
        code, out = reported("inspect", path)
        assert (code, out) == right or code == 2, what
        reported("figure", path, "--output", tmp_path / "map.svg", "--query", 0)


def _weights(trace: Trace) -> dict[str, Any]:
    found: dict[str, Any] = {
        layer: [call.weights().tolist() for call in trace.calls(layer)] for layer in trace
    }
    return found | {f"tokens of {layer}": trace.tokens(layer) for layer in trace}


def test_a_damaged_recipe_is_read_or_refused(recipe: Path, tmp_path: Path, times: int) -> None:
    path = Path(shutil.copy(recipe, tmp_path / "own.toml"))
    for _ in whiles(path, 6 * times, "recipe"):
        reported("inspect", path)


@pytest.mark.parametrize(
    "assignment",
    [
        *("=", "", "seed", "seed=" + "9" * 5000, "seed=1e999", "seed=nan", "seed=\x00"),
        *(".".join("a" * 900) + "=1", "a" + ".a" * 900, "seed=" + "x" * 9999, "data=[[["),
        *(
            "model.hidden_dim=" + "[" * 900 + "]" * 900,
            "model.hidden_dim=" + "{a=" * 90 + "1" + "}" * 90,
        ),
        *("model.hidden_dim='" + "x" * 100_000 + "'", "model." + "x" * 100_000 + "=1"),
        *("training.learning_rate=\ud800", "data.train=" + "x" * 5000),
    ],
    ids=range(17),
)
def test_an_assignment_of_any_kind_is_taken_or_refused_in_few_words(
    recipe: Path, run: Path, assignment: str
) -> None:
    reported("inspect", recipe, "--set", assignment)
    reported("translate", run, "--set", f"decoding.{assignment}", text="1\n")


TEXTS: dict[str, tuple[bytes, Callable[[Path], object]]] = {
    "pairs.tsv": (
        b"a b\tc d\nsehr gr\xc3\xbcn\tvery green\n" * 3,
        lambda path: read_pairs([path]),
    ),
    "texts.jsonl": (
        b'{"text": "a film", "label": "pos"}\n{"text": "b", "label": 1, "more": [1, {"x": 2}]}\n'
        * 2,
        read_labelled_texts,
    ),
    "texts.csv": (b'text,label\n"a, b",pos\n"say ""x""",neg\nlast,1\n', read_labelled_texts),
    "texts.tsv": (b"text\tlabel\na b\tpos\nc\tneg\n", read_labelled_texts),
    "bank.conllu": (
        b"# sent_id = 1\n1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n1\tde\tde\tADP\t_\t_\t3\tcase\t_\t_\n"
        b"2\tle\tle\tDET\t_\t_\t3\tdet\t_\t_\n3\tpain\tpain\tNOUN\t_\t_\t0\troot\t_\t_\n\n",
        lambda path: list(read_conllu(path)),
    ),
    "links.talp": (b"0-0 1-2\n\n3-4\n", lambda path: read_links(path, first=0)),
    "gold.talp": (b"1-1 2p3\n\n3-4\n", lambda path: read_reference(path, first=1)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TEXTS)
def test_a_damaged_text_is_read_or_refused_by_its_name(
    tmp_path: Path, times: int, name: str
) -> None:
    content, read = TEXTS[name]
    path = tmp_path / name
    path.write_bytes(content)
    read(path)
    whole, chance = content, random.Random(name)
    for _ in range(60 * times):
        what, changed = damaged(whole, chance)
        path.write_bytes(changed)
        try:
            read(path)
        except AttlasError as error:
            assert str(path) in str(error), what  # noqa: PT017
            assert len(str(error)) < LONGEST  # noqa: PT017


@pytest.mark.parametrize("name", ["labels.json", "tokenizer.json", "metrics.jsonl"])
def test_a_run_without_a_seal_never_ends_in_a_traceback(
    classifying: Path, times: int, name: str
) -> None:
    """As an older attlas has left it: what its files say is all that is known."""
    store = Run(classifying).store
    best = str(store.named("best"))
    store.write(best, replace(store.read(best), seal=None))
    store.point("best", best)
    with in_time():
        code, _, error = called("classify", classifying, text=REVIEWS)
    assert code == 0
    assert f"checkpoint {best} of {classifying} was saved by an older attlas" in error
    for _ in whiles(classifying / name, times, f"older {name}"):
        reported("classify", classifying, text=REVIEWS)
        reported("inspect", classifying)

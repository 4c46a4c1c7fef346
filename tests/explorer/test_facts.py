import json
from pathlib import Path

import pytest

from attlas.errors import AttlasError
from attlas.explorer import app
from attlas.explorer.backends import facts
from attlas.runs.facts import languages
from support.backwards import Backwards

RECIPE = """
[data]
kind = "shipped"
direction = "de-en"
[model]
kind = "recurrent"
attention = "general"
"""


def run(folder: Path, config: str = RECIPE, events: list[dict[str, object]] | None = None) -> str:
    folder.mkdir()
    (folder / "config.toml").write_text(config, encoding="utf-8")
    lines = "".join(json.dumps(event) + "\n" for event in events or [])
    (folder / "metrics.jsonl").write_text(lines, encoding="utf-8")
    return str(folder)


def validated(bleu: float | None, best: bool) -> dict[str, object]:
    return {
        "event": "validated",
        "bleu": bleu,
        "best": best,
        "sentences": 500,
        "signature": f"signature of {bleu}",
    }


def test_a_model_without_a_run_says_only_how_large_it_is() -> None:
    known = facts(Backwards())
    assert known.parameters == 12
    assert (known.name, known.source_language, known.bleu, known.example) == (None,) * 4


def test_a_run_says_its_name_languages_and_attention(tmp_path: Path) -> None:
    known = facts(Backwards(facts={"run": run(tmp_path / "tuesday"), "parameters": 7}))
    assert known.name == "tuesday"
    assert (known.source_language, known.target_language) == ("de", "en")
    assert known.attention == "general"
    assert known.parameters == 7
    assert known.example is not None
    assert known.example.startswith("Ich ")  # in the language that the model reads
    assert known.bleu is None


def test_a_language_without_an_example_gets_none(tmp_path: Path) -> None:
    data = '[data]\nkind = "files"\ntrain = ["train.xx", "train.en"]\n'
    config = data + '[model]\nkind = "recurrent"\nattention = "additive"\n'
    known = facts(Backwards(facts={"run": run(tmp_path / "a", config)}))
    assert known.source_language == "xx"
    assert known.example is None


def test_the_score_is_that_of_the_best_validation_and_keeps_its_signature(tmp_path: Path) -> None:
    events = [
        {"event": "trained", "loss": 1.0},
        validated(20.0, best=True),
        validated(30.5, best=True),
        validated(29.0, best=False),
    ]
    known = facts(Backwards(facts={"run": run(tmp_path / "a", events=events)}))
    assert known.bleu == 30.5
    assert known.bleu_signature == "signature of 30.5"
    assert known.bleu_sentences == 500


def test_a_best_validation_without_a_score_gives_none(tmp_path: Path) -> None:
    events = [validated(20.0, best=True), validated(None, best=True)]
    known = facts(Backwards(facts={"run": run(tmp_path / "a", events=events)}))
    assert (known.bleu, known.bleu_signature) == (None, None)


@pytest.mark.parametrize(("symbols", "length"), [(32, [1, 20]), (4, [1, 20]), (3, [2, 5])])
def test_a_toy_task_gets_an_example_of_its_own_symbols(
    tmp_path: Path, symbols: int, length: list[int]
) -> None:
    data = f'[data]\nkind = "toy"\nsymbols = {symbols}\nlength = {length}\n'
    config = data + '[model]\nkind = "recurrent"\nattention = "additive"\n'
    known = facts(Backwards(facts={"run": run(tmp_path / "a", config)}))
    assert known.example is not None
    words = known.example.split()
    assert length[0] <= len(words) <= length[1]
    assert all(0 <= int(word) < symbols for word in words)


@pytest.mark.parametrize(
    ("data", "codes"),
    [
        ({"direction": "en-de"}, ("en", "de")),
        ({"train": ["/data/train.en", "/data/train.fr.gz"]}, ("en", "fr")),
        ({"train": ["/data/en-ja.tsv"]}, (None, None)),
        ({"train": "train.tsv"}, (None, None)),
        ({"train": ["/data/source.txt", "/data/target.txt"]}, (None, None)),
        ({"train": ["/data/source.text", "/data/target.text"]}, (None, None)),
        ({"source": "translation.en", "target": "translation.cs", "train": "train"}, ("en", "cs")),
        ({"source": "sentence", "target": "answer", "train": "train"}, (None, None)),
        ({"task": "reverse", "train": 20_000}, (None, None)),
    ],
)
def test_languages_are_read_where_the_data_name_them(
    data: dict[str, object], codes: tuple[str | None, str | None]
) -> None:
    assert languages(data) == codes


def test_a_damaged_run_is_reported_before_anything_is_served(tmp_path: Path) -> None:
    folder = run(tmp_path / "a", "[data]\nkind = 'toy'\n")
    with pytest.raises(AttlasError, match=r"a table \[model\]"):
        app(Backwards(facts={"run": folder}))

"""A checkpoint knows the files and settings beside it: other ones are refused by name."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from attlas.config import read_toml, write_toml
from attlas.data import LabelledVocabularies, Labels, Pair, VocabularyConfig, build_vocabularies
from attlas.errors import AttlasError
from attlas.models import ClassifierConfig, RecurrentConfig, build, build_classifier
from attlas.runs import BEST, LAST, Checkpoint, CheckpointStore, Run
from attlas.runs.seal import check_sealed, seal_of

RECURRENT = RecurrentConfig(embed_dim=4, hidden_dim=4, encoder_hidden_dim=4)
CLASSIFIER = ClassifierConfig(embed_dim=8, num_heads=2, ffn_dim=8, layers=1)
WORDS = VocabularyConfig(kind="words", size=20, shared=False)


def translating(folder: Path, text: str = "a b c", seed: int = 1) -> Path:
    """A whole run that translates, as a training would leave it."""
    folder.mkdir()
    vocabularies = build_vocabularies(WORDS, [Pair(text, "x y")])
    vocabularies.save(folder)
    torch.manual_seed(seed)
    model = build(RECURRENT, len(vocabularies.source), len(vocabularies.target))
    return written(folder, RECURRENT.model_dump(mode="json"), model, seed)


def classifying(folder: Path) -> Path:
    """The same that classifies."""
    folder.mkdir()
    text = build_vocabularies(WORDS, [Pair("a b c", "x y")]).source
    LabelledVocabularies(text, Labels(("bad", "fine", "good"))).save(folder)
    torch.manual_seed(1)
    model = build_classifier(CLASSIFIER, len(text), 3)
    return written(folder, CLASSIFIER.model_dump(mode="json"), model, 1)


def written(folder: Path, model: object, built: torch.nn.Module, seed: int) -> Path:
    recipe = {"seed": seed, "model": model, "vocabulary": WORDS.model_dump(mode="json")}
    recipe |= {"decoding": {"num_beams": 2}, "training": {"learning_rate": 0.1, "max_steps": 5}}
    (folder / "config.toml").write_text(write_toml(recipe), encoding="utf-8")
    data = {"train": {"sha256": f"{seed}0"}, "valid": {"sha256": f"{seed}1"}}
    provenance = {"seed": seed, "commit": None, "data": data, "recipe": recipe}
    (folder / "provenance.json").write_text(json.dumps(provenance), encoding="utf-8")
    store = CheckpointStore(folder)
    for name in ("00000005", "00000007"):
        store.write(name, Checkpoint(built.state_dict(), seal=seal_of(folder)))
    store.point(BEST, "00000005")
    store.point(LAST, "00000007")
    return folder


def opened(folder: Path) -> object:
    run = Run(folder)
    return run.classifier() if run.classifies else run.model()


@pytest.mark.parametrize("make", [translating, classifying])
def test_a_run_whose_files_are_as_they_were_opens(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    folder = make(tmp_path / "run")
    opened(folder)
    opened(Path(shutil.copytree(folder, tmp_path / "copied")))


@pytest.mark.parametrize("make", [translating, classifying])
def test_every_third_bit_of_a_vocabulary_and_of_the_labels_counts(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    folder = make(tmp_path / "run")
    seal = CheckpointStore(folder).read("best").seal
    assert seal is not None
    assert len(seal["files"]) == 2
    for name in seal["files"]:
        whole = (folder / name).read_bytes()
        for place in range(
            0, 8 * len(whole), 3
        ):  # 3 and 8 have no common factor: any bit of a byte
            flipped = bytearray(whole)
            flipped[place // 8] ^= 1 << place % 8
            (folder / name).write_bytes(flipped)
            with pytest.raises(AttlasError, match=f"got {name} with other bytes"):
                check_sealed(folder, "best", seal)
        with pytest.raises(AttlasError, match=f"got {name} with other bytes"):
            opened(folder)
        (folder / name).write_bytes(whole)
    opened(folder)


def test_labels_in_another_order_are_refused_with_the_way_out(tmp_path: Path) -> None:
    folder = classifying(tmp_path / "run")
    (folder / "labels.json").write_text('["good", "fine", "bad"]\n')
    with pytest.raises(
        AttlasError, match=r"labels\.json with other bytes.*put them back as attlas"
    ):
        opened(folder)


def test_the_vocabulary_of_another_run_is_refused_though_it_is_as_large(tmp_path: Path) -> None:
    folder, other = translating(tmp_path / "run"), translating(tmp_path / "other", "d e f")
    shutil.copy(other / "source.json", folder / "source.json")
    with pytest.raises(AttlasError, match=r"with which checkpoint 00000005.*source\.json with"):
        opened(folder)


def test_vocabularies_that_changed_places_are_refused(tmp_path: Path) -> None:
    folder = translating(tmp_path / "run")
    source, target = folder / "source.json", folder / "target.json"
    (folder / "kept").write_bytes(source.read_bytes())
    target.replace(source)
    (folder / "kept").replace(target)
    with pytest.raises(AttlasError, match=r"source\.json with other.*target\.json with other"):
        opened(folder)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.model", "source.model"])
def test_a_vocabulary_that_comes_to_a_run_is_refused(tmp_path: Path, name: str) -> None:
    folder = translating(tmp_path / "run")
    shutil.copy(folder / "target.json", folder / name)
    with pytest.raises(AttlasError, match=f"got {name}, which was not there"):
        opened(folder)


def test_a_vocabulary_that_is_gone_is_named(tmp_path: Path) -> None:
    folder = translating(tmp_path / "run")
    (folder / "source.json").unlink()
    with pytest.raises(AttlasError, match=r"got no source\.json"):
        opened(folder)


@pytest.mark.parametrize(
    ("make", "table", "changed", "said"),
    [
        (classifying, "model", {"num_heads": 4}, r"model\.num_heads = 4 instead of 2"),
        (classifying, "model", {"pooling": "max"}, r"model\.pooling = 'max' instead of 'mean'"),
        (classifying, "model", {"activation": "gelu"}, r"model\.activation = 'gelu' instead"),
        (classifying, "model", {"positions": "none"}, r"model\.positions = 'none' instead"),
        (translating, "model", {"attention": "concat"}, r"model\.attention = 'concat' instead"),
        (translating, "vocabulary", {"kind": "characters"}, r"vocabulary\.kind = 'characters' in"),
    ],
)
def test_settings_of_the_model_that_were_changed_by_hand_are_reported_with_what_they_were(
    tmp_path: Path,
    make: Callable[[Path], Path],
    table: str,
    changed: dict[str, object],
    said: str,
) -> None:
    folder = make(tmp_path / "run")
    tables = read_toml(folder / "config.toml")
    tables[table] |= changed
    (folder / "config.toml").write_text(write_toml(tables), encoding="utf-8")
    with pytest.raises(AttlasError, match=rf"{said}.*put these back there"):
        opened(folder)


def test_settings_that_a_user_may_change_stay_free(tmp_path: Path) -> None:
    folder = translating(tmp_path / "run")
    tables = read_toml(folder / "config.toml")
    tables |= {"decoding": {"num_beams": 7}, "training": {"learning_rate": 0.1, "max_steps": 9}}
    (folder / "config.toml").write_text(write_toml(tables), encoding="utf-8")
    opened(folder)


def test_how_a_recipe_is_written_does_not_matter_but_what_it_says(tmp_path: Path) -> None:
    folder = translating(tmp_path / "run")
    config = folder / "config.toml"
    tables = read_toml(config)
    tables["model"] = dict(sorted(tables["model"].items(), reverse=True))
    del tables["model"]["bidirectional"]  # which is true where it is left out
    config.write_text(f"# mine\n{write_toml(tables)}\n\n", encoding="utf-8")
    opened(folder)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    """Of the same model, vocabulary and size: only the seed was another."""
    folder, other = translating(tmp_path / "run"), translating(tmp_path / "other", seed=2)
    shutil.copy(other / "checkpoints" / "00000005.safetensors", folder / "checkpoints")
    (folder / "best").write_text("00000005\n")
    with pytest.raises(AttlasError, match=r"provenance\.json of two runs: other data \(train\)"):
        opened(folder)


@pytest.mark.parametrize(
    ("key", "value"), [("seed", 2), ("training", {"learning_rate": 0.2, "max_steps": 5})]
)
def test_a_provenance_of_another_recipe_is_refused(tmp_path: Path, key: str, value: object) -> None:
    folder = translating(tmp_path / "run")
    reported = json.loads((folder / "provenance.json").read_text())
    reported["recipe"][key] = value
    (folder / "provenance.json").write_text(json.dumps(reported))
    with pytest.raises(
        AttlasError, match=r"expected the recipe with which .* began in .*provenance"
    ):
        opened(folder)


def test_a_provenance_may_tell_of_other_machines_or_be_lost(tmp_path: Path) -> None:
    folder = translating(tmp_path / "run")
    reported = json.loads((folder / "provenance.json").read_text())
    reported["recipe"]["decoding"] = {"num_beams": 9}
    (folder / "provenance.json").write_text(json.dumps(reported | {"commit": "a" * 40}))
    opened(folder)
    (folder / "provenance.json").unlink()
    opened(folder)


def test_a_checkpoint_without_a_seal_opens_as_before(tmp_path: Path) -> None:
    folder = translating(tmp_path / "run")
    store = CheckpointStore(folder)
    store.write("00000005", Checkpoint(store.read("00000005").model))
    (folder / "best").write_text("00000005.safetensors\n")
    assert not store.sealed("00000005")
    assert store.sealed("00000007")
    opened(folder)


def test_every_bit_of_a_pointer_counts(tmp_path: Path) -> None:
    """Of 5 and 7 one is a flipped bit away from the other."""
    folder = translating(tmp_path / "run")
    store = CheckpointStore(folder)
    for name in ("00000004", "00000001", "10000005"):
        shutil.copy(store.path("00000005"), store.path(name))
    whole = (folder / "best").read_bytes()
    assert whole.startswith(b"00000005.safetensors ")
    for place in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        (folder / "best").write_bytes(flipped)
        try:
            assert store.named("best") == "00000005"  # its last byte is white space
            assert place // 8 == len(whole) - 1
        except AttlasError as error:
            assert "best" in str(error)  # noqa: PT017


def test_a_pointer_of_another_run_is_refused_and_one_written_by_hand_is_not(
    tmp_path: Path,
) -> None:
    folder, other = translating(tmp_path / "run"), translating(tmp_path / "other", seed=2)
    shutil.copy(other / "best", folder / "best")
    with pytest.raises(AttlasError, match=r"of another run.*write the name alone of the right one"):
        opened(folder)
    for written_by_hand in ("00000007", "00000007.safetensors\n"):
        (folder / "best").write_text(written_by_hand)
        assert CheckpointStore(folder).named("best") == "00000007"


@pytest.mark.parametrize(
    "text",
    ["a" * 300, "../" * 200, "\x00", "00000005 \x00", "a b c", ".", "", "00000005.safetensors  x"],
)
def test_a_pointer_that_names_nothing_is_an_error_that_is_short(tmp_path: Path, text: str) -> None:
    folder = translating(tmp_path / "run")
    (folder / "best").write_text(text)
    with pytest.raises(AttlasError, match=r"best; got .*write ") as caught:
        opened(folder)
    assert len(str(caught.value)) < 600 + 2 * len(str(tmp_path))

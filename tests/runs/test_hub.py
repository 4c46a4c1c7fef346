"""Runs as Hugging Face has models: saved, uploaded, and read by a name of the Hub."""

import sys

import pytest
import torch

from attlas.errors import AttlasError
from attlas.inference import TextClassifier, Translator
from attlas.runs import Checkpoint, CheckpointStore, Run
from attlas.runs.model_card import model_card
from support.exportable import classifier_run, run_of, small, small_classifier
from support.warm_processes import python

hub = pytest.importorskip("huggingface_hub")

TEXT = "a b c"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    run = run_of(tmp_path_factory.mktemp("runs") / "mine", small(), num_beams=2)
    store = run.store
    name = store.number_of("best")
    read = store.read(name)
    training = {"moment": torch.ones(9)}
    store.write(name, Checkpoint(read.model, training, read.facts, read.seal))
    return run


def snapshot(run, cache, name="me/demo"):
    """The run as the cache of the Hub has it: links from a snapshot to blobs."""
    place = cache / f"models--{name.replace('/', '--')}"
    saved = cache / "saved"
    run.save_pretrained(saved)
    (saved / "modeling_evil.py").write_text("raise SystemExit('executed')")
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text(COMMIT)
    (place / "blobs").mkdir()
    for number, file in enumerate(sorted(path for path in saved.rglob("*") if path.is_file())):
        blob = place / "blobs" / str(number)
        blob.write_bytes(file.read_bytes())
        link = place / "snapshots" / COMMIT / file.relative_to(saved)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
    return cache


def test_a_saved_run_answers_as_the_run_does_and_has_nothing_of_the_training(run, tmp_path):
    run.save_pretrained(tmp_path / "saved")
    expected = Translator(run)(TEXT)
    for door in (Translator, Translator.from_pretrained):
        found = door(tmp_path / "saved")(TEXT)
        assert (found.text, found.score) == (expected.text, expected.score)
    store = CheckpointStore(tmp_path / "saved")
    assert len(store.names()) == 1
    assert dict(store.read("best").training) == {}
    assert dict(run.store.read("best").training) != {}


def test_a_run_is_saved_into_an_empty_folder_alone(run, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(AttlasError, match=r"an empty folder .*which holds something"):
        run.save_pretrained(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    with pytest.raises(AttlasError, match="a checkpoint '7'"):
        run.save_pretrained(tmp_path / "new", checkpoint="7")
    assert not (tmp_path / "new").exists()


def test_a_run_of_the_hub_is_read_from_its_snapshot_and_executes_nothing(run, tmp_path):
    cache = snapshot(run, tmp_path)
    translator = Translator.from_pretrained("me/demo", cache_dir=cache, local_files_only=True)
    assert translator(TEXT).text == Translator(run)(TEXT).text
    assert "modeling_evil" not in sys.modules
    with pytest.raises(AttlasError, match=r"a run in the folder me/other, or of that name on the"):
        Run.from_pretrained("me/other", cache_dir=cache, local_files_only=True)


def test_only_the_files_of_a_run_are_fetched(run, tmp_path, monkeypatch):
    requested = {}

    def snapshot_download(name, **given):
        requested.update(given, name=name)
        return str(run.path)

    monkeypatch.setattr(hub, "snapshot_download", snapshot_download)
    Run.from_pretrained("me/demo", revision="v1")
    assert (requested["name"], requested["revision"]) == ("me/demo", "v1")
    files = {path.name for path in run.path.iterdir() if path.is_file()} - {"last"}
    assert files <= set(requested["allow_patterns"])
    assert not any(
        one.endswith((".py", ".bin", ".pt", ".pkl", "*")) for one in requested["allow_patterns"]
    )


def test_a_folder_comes_before_a_name_of_the_hub_and_other_texts_are_folders(
    run, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    run.save_pretrained("me/demo")
    assert Run.from_pretrained("me/demo").path.samefile(tmp_path / "me" / "demo")
    for name in ("nowhere", "./me/other", "a/b/c"):
        with pytest.raises(AttlasError, match="the folder of a run; got no folder at"):
            Run.from_pretrained(name)


def test_an_upload_is_what_is_saved(run, monkeypatch):
    uploaded = {}

    class Api:
        def __init__(self, token=None):
            uploaded["token"] = token

        def create_repo(self, name, private, exist_ok):
            uploaded["private"] = private
            return f"https://huggingface.co/{name}"

        def upload_folder(self, repo_id, folder_path, commit_message):
            uploaded["text"] = Translator(folder_path)(TEXT).text

    monkeypatch.setattr(hub, "HfApi", Api)
    assert run.push_to_hub("me/demo", private=True, token="t") == "https://huggingface.co/me/demo"
    assert uploaded == {"token": "t", "private": True, "text": Translator(run)(TEXT).text}
    with pytest.raises(AttlasError, match='write it as "user/model"'):
        run.push_to_hub("demo")

    def refused(*_, **__):
        raise OSError("401 Client Error")

    monkeypatch.setattr(Api, "create_repo", refused)
    with pytest.raises(AttlasError, match=r"401 Client Error; log in \(hf auth login\)"):
        run.push_to_hub("me/demo")


def test_a_classifier_is_saved_and_read_likewise(tmp_path):
    run = classifier_run(tmp_path / "mine", small_classifier())
    run.save_pretrained(tmp_path / "saved")
    expected = TextClassifier(run)(TEXT)
    found = TextClassifier.from_pretrained(tmp_path / "saved")(TEXT)
    assert found.probabilities == expected.probabilities


def test_without_huggingface_hub_the_command_that_installs_it_is_reported():
    code = """
import sys
sys.modules["huggingface_hub"] = None
from attlas.runs import Run
Run.from_pretrained("me/demo")
"""
    done = python(code)
    assert "run: pip install 'attlas[hub]'" in done.stderr


def test_a_saved_run_has_a_card_whose_code_runs(run, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run.save_pretrained("saved")
    card = (tmp_path / "saved" / "README.md").read_text(encoding="utf-8")
    _, head, body = card.split("---\n", 2)
    assert "pipeline_tag: translation\n" in head
    assert "library_name: attlas\n" in head
    assert body.startswith("\n# saved\n")
    size = sum(tensor.numel() for tensor in run.store.read("best").model.values())
    assert f"with {size:,} parameters" in body
    code = body.split("```python\n")[1].split("```")[0]
    exec(code, {})
    assert Translator(run)("A text.").text in capsys.readouterr().out


def test_the_card_of_a_training_has_its_data_and_its_best_validation():
    events = [
        {"event": "validated", "best": True, "bleu": 12.345, "signature": "v:1", "update": 5},
        {"event": "validated", "best": False, "bleu": 11.0, "update": 9, "seconds": 90.0},
    ]
    provenance = {"data": {"train": {"name": "/home/me/a|b.tsv", "pairs": 1200}}, "seed": 3}
    card = model_card(
        "me/demo",
        {"model": {"kind": "transformer"}, "data": {"direction": "en-de"}},
        provenance,
        events,
        10,
        classifies=False,
    )
    assert "language:\n- en\n- de\n" in card
    assert "which translates from en to de" in card
    assert "| train data | a\\|b.tsv, 1,200 pairs |" in card
    assert "/home" not in card
    assert "| BLEU of the best validation | 12.35 |" in card or "| 12.34 |" in card
    assert "| updates | 9 |" in card


def test_a_translator_and_a_classifier_are_saved_by_themselves(run, tmp_path):
    translator = Translator(run)
    translator.save_pretrained(tmp_path / "a")
    assert Translator.from_pretrained(tmp_path / "a")(TEXT).text == translator(TEXT).text
    classifier = TextClassifier(classifier_run(tmp_path / "mine", small_classifier()))
    classifier.save_pretrained(tmp_path / "b")
    assert "pipeline_tag: text-classification" in (tmp_path / "b" / "README.md").read_text()
    assert TextClassifier.from_pretrained(tmp_path / "b")(TEXT).label == classifier(TEXT).label
    made = Translator.of(translator.model, translator.vocabularies)
    with pytest.raises(AttlasError, match="a model that was opened from a run"):
        made.save_pretrained(tmp_path / "c")

"""Exports of a classifier, but for ONNX."""

import json
from pathlib import Path

import pytest
import safetensors.torch
import torch

from attlas.data import LabelledVocabularies
from attlas.errors import AttlasError
from attlas.export import export
from attlas.inference import TextClassifier
from attlas.models import ClassifierConfig, build_classifier
from attlas.runs import Run
from support.exportable import classifier_run, sentences, small_classifier, subwords

KINDS = {
    "mean": small_classifier(),
    "attentive, rotary": small_classifier(pooling="attentive", positions="rotary"),
    "first, learned": small_classifier(
        pooling="first", positions="learned", max_positions=30, patterns=("everywhere",)
    ),
    "max, shared keys": small_classifier(pooling="max", num_kv_heads=1, norm_type="rms"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_folder_holds_all_that_makes_the_same_classifier(tmp_path: Path, kind: str) -> None:
    run = classifier_run(tmp_path / "run", KINDS[kind])
    exported = export(run, "safetensors", tmp_path / "out")
    folder = tmp_path / "out"
    vocabularies = LabelledVocabularies.load(folder)
    config = ClassifierConfig.read(Run(folder).table("model"), "the folder")
    sizes = len(vocabularies.text), len(vocabularies.labels)
    model = build_classifier(config, *sizes)
    model.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"))
    source, token_mask = sentences(sizes[0], (9, 4, 1))
    with torch.no_grad():
        assert torch.equal(model.eval()(source, token_mask), run.classifier()(source, token_mask))
    classifier = TextClassifier.of(model, vocabularies)
    for text in ("a1 a2  a3<br />unheard", ""):
        assert classifier(text).probabilities == TextClassifier(run)(text).probabilities
    assert {"model.safetensors", "config.toml", "tokenizer.json", "labels.json"} < set(
        exported.files
    )


def test_a_vocabulary_of_subwords_is_there_as_it_was(tmp_path: Path) -> None:
    vocabulary = subwords().source
    run = classifier_run(tmp_path / "run", small_classifier(), vocabulary)
    export(run, "safetensors", tmp_path / "out")
    read = LabelledVocabularies.load(tmp_path / "out")
    assert read.labels == run.labelled_vocabularies().labels
    assert read.text.encode("The 3rd house “”") == vocabulary.encode("The 3rd house “”")


def test_the_folder_says_of_which_checkpoint_it_is_and_how_a_text_is_read(tmp_path: Path) -> None:
    run = classifier_run(tmp_path / "run", small_classifier())
    export(run, "safetensors", tmp_path / "out")
    origin = json.loads((tmp_path / "out" / "attlas.json").read_bytes())
    assert origin["checkpoint"] == "00000007"
    assert origin["provenance"] == run.provenance()
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "attlas.models.build_classifier" in text
    assert "a text ends with end" in text
    assert "logit n is that of label n" in text


@pytest.mark.parametrize(("format_", "taker"), [("huggingface", "Marian"), ("ctranslate2", "CTr")])
def test_what_holds_translators_alone_names_what_holds_a_classifier(
    tmp_path: Path, format_: str, taker: str
) -> None:
    run = classifier_run(tmp_path / "run", small_classifier())
    expected = (
        f"expected a model of kind \"transformer\" for {taker}.*; got 'classifier'; use --to onnx"
    )
    with pytest.raises(AttlasError, match=expected):
        export(run, format_, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_checkpoint_that_is_not_there_is_the_callers_mistake(tmp_path: Path) -> None:
    run = classifier_run(tmp_path / "run", small_classifier())
    with pytest.raises(AttlasError, match="a checkpoint 'last'"):
        export(run, "safetensors", tmp_path / "out", checkpoint="last")

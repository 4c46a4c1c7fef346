"""From a text to its label."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from attlas import TextClassifier
from attlas.errors import AttlasError
from attlas.patterns import parse
from attlas.recording import FactoredAttentionMap, Trace
from attlas.runs import Run
from attlas.training import Recipe, train
from support.labelled_runs import reviews, tables, trained, write_lines


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("classifier"), max_steps=60)


@pytest.fixture(scope="module")
def classifier(run: Path) -> TextClassifier:
    return TextClassifier(run)


def test_the_label_is_the_most_probable_one(classifier: TextClassifier) -> None:
    for entry in reviews(20, seed=5):
        found = classifier(entry["text"])
        assert list(found.probabilities) == ["neg", "pos"]
        assert sum(found.probabilities.values()) == pytest.approx(1.0)
        assert found.probability == max(found.probabilities.values())
        assert found.probabilities[found.label] == found.probability


def test_the_probabilities_are_those_of_the_model(classifier: TextClassifier) -> None:
    text = "the film was great"
    ids = torch.tensor([[*classifier.vocabularies.text.encode(text), 3]])
    with torch.no_grad():
        expected = classifier.model(ids).softmax(-1)[0].tolist()
    assert list(classifier(text).probabilities.values()) == pytest.approx(expected)


def test_many_texts_in_any_company_get_what_each_gets_alone(classifier: TextClassifier) -> None:
    texts = [entry["text"] for entry in reviews(40, seed=6)] + ["", "great", "film " * 300]
    alone = [classifier(text) for text in texts]
    for window, tokens in ((1, 1), (7, 64), (1000, 8192)):
        found = list(classifier.stream(iter(texts), window=window, tokens=tokens))
        assert [one.text for one in found] == [one.text for one in alone]
        for one, other in zip(found, alone, strict=True):
            assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)


def test_a_text_is_read_as_the_training_data_was(classifier: TextClassifier) -> None:
    assert classifier("great<br /><BR>\n film ").text == "great film"
    assert classifier("great<br />film") == classifier("great film")


def test_a_long_text_is_read_whole(classifier: TextClassifier) -> None:
    text = "the " * 3000 + "awful " * 40
    found = classifier(text)
    assert len(found.tokens) == 3041
    assert found.probabilities != pytest.approx(classifier("the " * 3000).probabilities)


def test_a_text_is_segmented_once_and_its_tokens_named_only_where_they_are_asked_for(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier, requested = TextClassifier(run), list[tuple[str, str]]()
    vocabulary = classifier.vocabularies.text
    for name in ("encode", "pieces_of"):
        token_mask = getattr(vocabulary, name)
        counted = partial(_counted, requested, name, token_mask)
        monkeypatch.setattr(vocabulary, name, counted)
    found = [classifier("a great film"), *classifier.stream(["dull", "a zebra"])]
    assert requested == [("encode", text) for text in ("a great film", "dull", "a zebra")]
    assert [one.tokens for one in found] == [
        ("a", "great", "film", "</s>"),
        ("dull", "</s>"),
        ("a", "<unk:zebra>", "</s>"),
    ]
    assert requested[3:] == [("pieces_of", "a zebra")]  # which alone has an unknown word


def _counted(
    requested: list[tuple[str, str]], name: str, token_mask: Callable[[str], list[Any]], text: str
) -> list[Any]:
    requested.append((name, text))
    return token_mask(text)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "words", "characters"])
def test_the_tokens_are_those_that_the_model_reads(tmp_path: Path, kind: str) -> None:
    classifier = made(tmp_path, vocabulary={"kind": kind, "size": 300})
    vocabulary = classifier.vocabularies.text
    for text in ("a great film", "", "the zebra \u5b57 \U0001f600", "▁ a ▁"):
        read = [*vocabulary.pieces_of(text), "</s>"]
        found = classifier(text)
        assert list(found.tokens) == read
        layer = next(iter(found.trace))
        assert found.trace.tokens(layer)[0] == (tuple(read),)
        assert found.trace[layer].shape[3] == len(read)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "words", "characters"])
def test_a_text_is_known_where_the_vocabulary_has_anything_of_it(tmp_path: Path, kind: str) -> None:
    classifier = made(tmp_path, vocabulary={"kind": kind, "size": 300})
    texts = ("a film", "\u5b57", "film \u5b57", "", "▁", "\u5b57 \u5b57")
    known = [classifier(text).known for text in texts]
    # Of characters, the space is one, and tells nothing of a text; of words, it is none.
    assert known == [True, False, True, False, False, False]


def made(folder: Path, **tables_: dict[str, Any]) -> TextClassifier:
    """A classifier that has learned little, of these settings."""
    lines = write_lines(folder / "reviews.jsonl", reviews(60))
    requested = tables(lines)
    for name, table in tables_.items():
        requested[name] = (requested[name] if name == "model" else {}) | table
    requested["batching"] = {"max_tokens": 512, "max_length": 256}
    return TextClassifier(train(Recipe.read(requested, "the test"), folder / "run").path)


@pytest.mark.parametrize(
    "patterns", [["window(18)"], ["window(9)", "window(9)"], ["either(window(18), landmarks(19))"]]
)
def test_what_the_first_token_cannot_see_is_counted_as_unread_and_changes_nothing(
    tmp_path: Path, patterns: list[str]
) -> None:
    model = {"pooling": "first", "patterns": patterns, "layers": len(patterns)}
    classifier = made(tmp_path, model=model)
    lengths = [0, 1, 18, 19, 20, 40]
    texts = [" ".join(["the"] * length) for length in lengths]
    unread = [max(0, length - 19) for length in lengths]
    if "landmarks" in patterns[0]:  # which the first token sees, in a text that has it
        unread[-1] = 20
        unread[-2] = 0
    for found in ([*classifier.stream(texts)], [classifier(text) for text in texts]):
        assert [one.unread for one in found] == unread
    plain = classifier(texts[-1])
    seen, unseen = (" ".join([*["the"] * at, "awful", *["the"] * (39 - at)]) for at in (5, 30))
    assert classifier(unseen).probabilities == plain.probabilities
    assert classifier(seen).probabilities != plain.probabilities


def test_what_is_beyond_learned_positions_is_counted_as_unread(tmp_path: Path) -> None:
    classifier = made(tmp_path, model={"positions": "learned", "max_positions": 30})
    texts = [" ".join(["the"] * length) for length in (0, 29, 30, 500)]
    assert [one.unread for one in classifier.stream(texts)] == [0, 0, 1, 471]
    cut = classifier(texts[-1] + " awful")
    assert len(cut.tokens) == 30
    assert cut.probabilities == classifier(texts[1]).probabilities
    assert cut.trace[next(iter(cut.trace))].shape[2:] == (30, 30)


def test_other_poolings_read_every_text_whole(classifier: TextClassifier) -> None:
    assert classifier("the " * 500).unread == 0


def test_an_empty_text_has_a_label_too(classifier: TextClassifier) -> None:
    assert classifier(" <br> ").tokens == ("</s>",)
    assert classifier("").label in classifier.labels


def test_its_trace_has_every_attention_with_its_labels(
    classifier: TextClassifier, tmp_path: Path
) -> None:
    found = classifier("the film was great")
    assert found.tokens == ("the", "film", "was", "great", "</s>")
    trace = found.trace
    assert tuple(trace) == ("encoder.layers.0.self_attention", "pooling.attention")
    own = trace["encoder.layers.0.self_attention"]
    assert isinstance(own, FactoredAttentionMap)
    assert own.pattern == parse("window(3)")
    assert own.shape == (1, 2, 5, 5)
    assert own.weights()[0, :, 0, 4].tolist() == [0.0, 0.0]
    pooled = trace["pooling.attention"]
    assert pooled.shape == (1, 1, 1, 5)
    assert pooled.weights().sum().item() == pytest.approx(1.0)
    assert trace.tokens("encoder.layers.0.self_attention") == ((found.tokens,), (found.tokens,))
    assert trace.tokens("pooling.attention") == ((found.tokens,), (("text",),))
    trace.save(tmp_path / "trace.safetensors")
    assert Trace.load(tmp_path / "trace.safetensors").source == (found.tokens,)
    assert found.trace is trace


def test_a_text_of_one_token_has_a_trace_as_well(classifier: TextClassifier) -> None:
    trace = classifier("").trace
    assert trace.tokens("pooling.attention")[1] == (("text",),)


def test_half_a_character_is_no_text(classifier: TextClassifier) -> None:
    with pytest.raises(AttlasError, match=r"half of a surrogate pair, U\+D800, at character 2"):
        classifier("a \ud800")


@pytest.mark.parametrize(
    ("texts", "options", "said"),
    [
        ("one text", {}, "several texts; got one text"),
        (["a"], {"window": 0}, "a window and a batch of at least 1"),
    ],
)
def test_what_are_no_texts_is_an_error(
    classifier: TextClassifier, texts: object, options: dict[str, int], said: str
) -> None:
    with pytest.raises(AttlasError, match=said):
        list(classifier.stream(texts, **options))  # type: ignore[arg-type]


def test_a_model_at_hand_answers_as_the_run_does(run: Path, classifier: TextClassifier) -> None:
    opened = Run(run)
    other = TextClassifier.of(opened.classifier().train(), opened.labelled_vocabularies())
    assert other("a great film") == classifier("a great film")
    assert "run" not in other.facts
    assert classifier.facts["labels"] == "neg, pos"
    assert classifier.facts["run"] == str(run)


def test_a_model_in_training_mode_is_reported(run: Path) -> None:
    classifier = TextClassifier(run)
    classifier.model.train()
    with pytest.raises(AttlasError, match="a model in evaluation mode; got one in training mode"):
        classifier("the film was great")

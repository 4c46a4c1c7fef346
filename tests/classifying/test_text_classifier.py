"""From a text to its label."""

from pathlib import Path

import pytest
import torch

from attlas import TextClassifier
from attlas.errors import AttlasError
from attlas.patterns import parse
from attlas.recording import FactoredReading, Trace
from attlas.runs import Run
from labelled_runs import reviews, trained


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("classifier"), updates=60)


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
        wanted = classifier.model(ids).softmax(-1)[0].tolist()
    assert list(classifier(text).probabilities.values()) == pytest.approx(wanted)


def test_many_texts_in_any_company_get_what_each_gets_alone(classifier: TextClassifier) -> None:
    texts = [entry["text"] for entry in reviews(40, seed=6)] + ["", "great", "film " * 300]
    alone = [classifier(text) for text in texts]
    for window, tokens in ((1, 1), (7, 64), (1000, 8192)):
        found = list(classifier.many(iter(texts), window=window, tokens=tokens))
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


def test_an_empty_text_has_a_label_too(classifier: TextClassifier) -> None:
    assert classifier(" <br> ").tokens == ("</s>",)
    assert classifier("").label in classifier.labels


def test_its_trace_has_every_attention_with_its_labels(
    classifier: TextClassifier, tmp_path: Path
) -> None:
    found = classifier("the film was great")
    assert found.tokens == ("the", "film", "was", "great", "</s>")
    trace = found.trace
    assert trace.layers == ("encoder.layers.0.self_attention", "pooling.attention")
    own = trace["encoder.layers.0.self_attention"]
    assert isinstance(own, FactoredReading)
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
        list(classifier.many(texts, **options))  # type: ignore[arg-type]


def test_a_model_at_hand_answers_as_the_run_does(run: Path, classifier: TextClassifier) -> None:
    opened = Run(run)
    other = TextClassifier.of(opened.classifier().train(), opened.labelled_vocabularies())
    assert other("a great film") == classifier("a great film")
    assert "run" not in other.facts
    assert classifier.facts["labels"] == "neg, pos"
    assert classifier.facts["run"] == str(run)

"""What else a model could have written, against its own search and its own probabilities."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

from attlas.data import LabelledVocabularies
from attlas.data.vocabularies import Labels
from attlas.data.vocabulary import BEGIN, END, UNKNOWN, Words
from attlas.errors import AttlasError
from attlas.explorer import app
from attlas.explorer.backends import LabellingTranslator
from attlas.explorer.beams import beams_message
from attlas.explorer.cancellation import SearchTurns
from attlas.explorer.messages import TranslationRequest
from attlas.inference import TextClassifier, Translator
from attlas.inference.huggingface import HuggingFaceModel
from attlas.models import (
    ClassifierConfig,
    build_classifier,
)
from attlas.recording.maps.reductions import PassCancelledError
from support.small_models import saved
from support.small_translators import small_translator

TEXT = "the cat sat"


def translator(kind: str = "transformer", **search: Any) -> Translator:
    return small_translator(kind, seed=4, **{"max_len_a": 0, "max_len_b": 6, **search})


class Asked:
    """A text that was read at the page."""

    def __init__(self, shown: Any, prefix: Any = "") -> None:
        self.client = TestClient(app(shown), base_url="http://localhost")
        body = {"text": TEXT, "prefix": prefix} if prefix else {"text": TEXT}
        answer = self.client.post("/api/translate", json=body)
        assert answer.status_code == 200, answer.json()
        self.reported = answer.json()

    def get(self, query: str = "") -> Any:
        return self.client.get(f"/api/maps/{self.reported['map']}/beams{query}")

    def found(self) -> dict[str, Any]:
        answer = self.get()
        assert answer.status_code == 200, answer.json()
        found: dict[str, Any] = answer.json()
        return found


def numbers(hypotheses: list[Any]) -> list[list[Any]]:
    return [
        [one["text"], tuple(one["tokens"]), one["score"], one["log_probability"], one["finished"]]
        for one in hypotheses
    ]


@pytest.mark.parametrize("kind", ["transformer", "additive"])
def test_hypotheses_are_the_n_best_list_of_the_translator(kind: str) -> None:
    shown = translator(kind)
    requested = Asked(shown)
    assert requested.reported["beams"] is True
    found = requested.found()
    best = shown(TEXT, n_best=5)
    assert found["num_beams"] == 5
    expected = [
        [one.text, one.tokens, one.score, one.log_probability, one.finished]
        for one in (best, *best.alternatives)
    ]
    assert numbers(found["hypotheses"]) == expected
    assert len(expected) == 5
    assert found["hypotheses"][0]["tokens"] == requested.reported["target"]


@pytest.mark.parametrize("kind", ["transformer", "additive"])
def test_alternatives_are_those_of_the_forced_pass(kind: str) -> None:
    shown = translator(kind, min_length=6)
    found = Asked(shown).found()
    run = shown(TEXT).forward_pass
    assert run is not None
    assert len(found["outputs"]) == len(run.outputs) == 6
    total = 0.0
    for place, reported in enumerate(found["outputs"]):
        with torch.no_grad():
            log_p = run.logits(place)[0].log_softmax(-1)
        most = log_p.exp().topk(5)
        assert [one["id"] for one in reported["top"]] == most.indices.tolist()
        assert [one["token"] for one in reported["top"]] == run.names(most.indices.tolist())
        assert [one["probability"] for one in reported["top"]] == pytest.approx(
            most.values.tolist()
        )
        assert reported["id"] == run.outputs[place].label
        assert reported["log_probability"] == pytest.approx(float(log_p[reported["id"]]), abs=1e-6)
        assert [one["open"] for one in reported["top"]] == [
            one["id"] not in (0, BEGIN, END) for one in reported["top"]
        ]
        total += reported["log_probability"]
    assert total == pytest.approx(shown(TEXT).log_probability, abs=1e-4)


def test_another_word_is_chosen_by_the_ids_that_it_begins_with() -> None:
    shown = translator(min_length=6)
    outputs = Asked(shown).found()["outputs"]
    other = next(one for one in outputs[2]["top"][1:] if one["open"])
    prefix = [outputs[0]["id"], outputs[1]["id"], other["id"]]
    again = Asked(shown, prefix)
    assert again.reported["target"][:3] == [
        outputs[0]["token"],
        outputs[1]["token"],
        other["token"],
    ]
    by_hand = shown(TEXT, prefix)
    assert again.reported["score"] == by_hand.score
    assert tuple(again.reported["target"]) == by_hand.tokens
    found = again.found()
    assert found["outputs"][2]["id"] == other["id"]
    best = shown(TEXT, prefix, n_best=5)
    assert [one["text"] for one in found["hypotheses"]] == [
        one.text for one in (best, *best.alternatives)
    ]


def test_a_prefix_of_ids_is_that_of_its_text_where_a_text_spells_it() -> None:
    shown = translator()
    ids = shown.vocabularies.target.encode("cat")
    one, other = shown(TEXT, prefix="cat"), shown(TEXT, prefix=ids)
    assert (one.text, one.score) == (other.text, other.score)
    assert [found.text for found in shown([TEXT], prefix=ids)] == [one.text]
    assert shown.with_prefix(ids)(TEXT).text == one.text


def test_a_token_that_is_never_written_cannot_be_chosen() -> None:
    shown = translator(unknown="forbid")
    tops = [one for output in Asked(shown).found()["outputs"] for one in output["top"]]
    assert {one["open"] for one in tops if one["id"] == UNKNOWN} == {False}
    with pytest.raises(AttlasError, match="a prefix of ids"):
        shown(TEXT, [UNKNOWN])


@pytest.mark.parametrize("settings", [{"method": "greedy"}, {"num_beams": 1}])
def test_where_the_search_keeps_one_hypothesis_a_beam_of_five_is_shown(
    settings: dict[str, Any],
) -> None:
    shown = translator(**settings)
    found = Asked(shown).found()
    best = shown(TEXT, method="beam", num_beams=5, n_best=5)
    assert found["num_beams"] == 5
    assert [one["score"] for one in found["hypotheses"]] == [
        one.score for one in (best, *best.alternatives)
    ]


def test_of_a_wide_beam_the_first_ten_are_shown() -> None:
    shown = translator(num_beams=12)
    found = Asked(shown).found()
    best = shown(TEXT, n_best=10)
    assert found["num_beams"] == 10
    assert [one["score"] for one in found["hypotheses"]] == [
        one.score for one in (best, *best.alternatives)
    ]


@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_an_encoder_decoder_of_hugging_face(tmp_path: Path, kind: str) -> None:
    shown = HuggingFaceModel(saved(tmp_path, kind), max_new_tokens=5)
    requested = Asked(shown)
    found = requested.found()
    inputs = shown.inputs(TEXT)
    outputs = shown.model.generate(
        **inputs, num_beams=5, num_return_sequences=5, max_new_tokens=5, do_sample=False,
        output_scores=True, return_dict_in_generate=True,
    )  # fmt: skip
    assert [one["score"] for one in found["hypotheses"]] == pytest.approx(
        outputs.sequences_scores.tolist(), abs=1e-5
    )
    for one, row in zip(found["hypotheses"], outputs.sequences, strict=True):
        ids = row[: 1 + len(one["tokens"])].unsqueeze(0)
        with torch.no_grad():
            logits = shown.model(**inputs, decoder_input_ids=ids[:, :-1]).logits[0]
        log_p = logits.double().log_softmax(-1).gather(1, ids[0, 1:, None]).sum()
        assert one["log_probability"] == pytest.approx(float(log_p), abs=1e-5)
        assert one["finished"] == (int(ids[0, -1]) == 3)
    first = found["outputs"][0]
    other = next(one for one in first["top"] if one["open"] and one["id"] != first["id"])
    again = Asked(shown, [other["id"]])
    assert again.reported["target"][0] == other["token"]
    assert again.reported["beams"] is True
    begins = {one["tokens"][0] for one in again.found()["hypotheses"]}
    assert begins == {other["token"]}


def test_models_that_search_nothing_have_no_hypotheses(tmp_path: Path) -> None:
    words = Words.built([TEXT], 100)
    model = build_classifier(
        ClassifierConfig.read({"embed_dim": 16, "num_heads": 2, "ffn_dim": 8}, "a test"),
        len(words),
        2,
    )
    labels = LabelledVocabularies(words, Labels(("bad", "good")))
    for shown in (
        LabellingTranslator(TextClassifier.of(model, labels)),
        HuggingFaceModel(saved(tmp_path / "gpt2", "gpt2")),
        HuggingFaceModel(saved(tmp_path / "bert", "bert")),
    ):
        requested = Asked(shown)
        assert requested.reported["beams"] is False
        assert requested.get().status_code == 400
        assert "searches for what it writes" in requested.get().json()["expected"]
    with pytest.raises(AttlasError, match="an encoder–decoder"):
        HuggingFaceModel(tmp_path / "gpt2").beams(TEXT)


@pytest.mark.parametrize(
    ("prefix", "said"),
    [
        ([END], "a prefix of ids of tokens below"),
        ([9999], "a prefix of ids of tokens below"),
        ([-1], "beside it"),
        ([True], "beside it"),
        ([1.5], "beside it"),
        ({"a": 1}, "beside it"),
        ([5] * 7, "a prefix of at most 6 tokens"),
        ([5] * 2001, "beside it"),
    ],
)
def test_a_wrong_prefix_is_reported(prefix: Any, said: str) -> None:
    client = TestClient(app(translator()), base_url="http://localhost")
    answer = client.post("/api/translate", json={"text": TEXT, "prefix": prefix})
    assert answer.status_code == 400
    assert said in answer.json()["expected"]


def test_a_wrong_prefix_of_an_answer_is_reported(tmp_path: Path) -> None:
    shown = HuggingFaceModel(saved(tmp_path, "bart"), max_new_tokens=3)
    for prefix in ([3], [10_000], [5, 5, 5]):
        with pytest.raises(AttlasError):
            shown(TEXT, prefix)


def test_a_parameter_is_refused() -> None:
    answer = Asked(translator()).get("?n=3")
    assert (answer.status_code, answer.json()["expected"]) == (400, "no parameter")


def test_what_nobody_waits_for_is_given_up_between_two_steps() -> None:
    shown = translator(min_length=6)
    run = shown(TEXT).forward_pass
    assert run is not None
    turns, stop = SearchTurns(), threading.Event()
    steps: list[int] = []

    def searched(next_turn: Callable[[], None]) -> None:
        def before_step() -> None:
            steps.append(1)
            if len(steps) == 2:
                stop.set()
            next_turn()

        beams_message(shown.bounded(before_step=before_step), TranslationRequest(TEXT), run)

    with pytest.raises(PassCancelledError), turns.taken(stop) as next_turn:
        searched(next_turn)
    assert len(steps) == 2

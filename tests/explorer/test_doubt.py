"""What an output becomes when a head looks elsewhere, against the model itself, changed by hand."""

import copy
import itertools
import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from starlette.testclient import TestClient
from torch import Tensor, nn

import attlas
from attlas.data import LabelledVocabularies
from attlas.data.vocabularies import Labels
from attlas.data.vocabulary import BEGIN, END, Words
from attlas.explorer import app, doubt
from attlas.explorer.backends import LabellingTranslator
from attlas.explorer.cancellation import SearchTurns
from attlas.explorer.doubt import Question, _Doubt
from attlas.explorer.maps import TextMaps
from attlas.inference import TextClassifier, Translator
from attlas.inference.huggingface import HuggingFaceModel
from attlas.models import (
    ClassifierConfig,
    build_classifier,
)
from attlas.recording import permuted
from attlas.recording.maps.reductions import PassCancelledError
from support.page_visits import serving
from support.small_models import saved
from support.small_translators import small_translator

TEXT = "the cat sat"
CROSS = "decoder.layers.0.cross_attention"


def translator(kind: str) -> Translator:
    return small_translator(kind, max_len_a=0, max_len_b=6, min_length=6)


class Asked:
    """A text that was read at the page, and what is asked of it."""

    def __init__(self, shown: Any, text: str = TEXT) -> None:
        self.client = TestClient(app(shown), base_url="http://localhost")
        self.reported = self.client.post("/api/translate", json={"text": text}).json()
        self.doubt = self.reported["doubt"]

    def layer(self, name: str) -> int:
        return [layer["name"] for layer in self.reported["layers"]].index(name)

    def get(self, layer: str, query: str, what: str = "doubt") -> Any:
        address = f"/api/maps/{self.reported['map']}/{self.layer(layer)}/{what}?{query}"
        return self.client.get(address)

    def effects(self, layer: str, query: str) -> dict[str, Any]:
        answer = self.get(layer, query)
        assert answer.status_code == 200, answer.json()
        found: dict[str, Any] = answer.json()
        found["by"] = {effect["name"]: effect for effect in found["changes"]}
        return found


class ByHand:
    """The teacher-forced pass over a translation, and its log-probabilities at one position."""

    def __init__(self, shown: Translator) -> None:
        self.model = shown.model
        self.source = shown.vocabularies.source.encode(TEXT)
        self.written = shown.search([self.source], [[]])[0][0].tokens
        self.names = shown.vocabularies.target.pieces(range(len(shown.vocabularies.target)))

    def __call__(
        self,
        position: int,
        *,
        without: int | None = None,
        change: Callable[[nn.Module], None] | None = None,
    ) -> Tensor:
        model: Any = copy.deepcopy(self.model) if change else self.model
        if change:
            change(model)
        ids = [id_ for place, id_ in enumerate([*self.source, END]) if place != without]
        with torch.no_grad():
            logits = model(torch.tensor([ids]), torch.tensor([[BEGIN, *self.written]]))
        found: Tensor = logits[0, position].double().log_softmax(-1)
        return found


@torch.no_grad()
def without_head(module: Any, head: int, heads: int) -> None:
    """Of a head nothing is read: its part of the output's projection is 0."""
    size = module.out_proj.weight.shape[1] // heads
    module.out_proj.weight[:, head * size : (head + 1) * size] = 0.0


@torch.no_grad()
def even_head(module: Any, head: int, heads: int) -> None:
    """All scores of a head are 0, so that its weights are uniform."""
    size = module.q_proj.weight.shape[0] // heads
    module.q_proj.weight[head * size : (head + 1) * size] = 0.0
    module.q_proj.bias[head * size : (head + 1) * size] = 0.0


@pytest.mark.parametrize(
    "layer", [CROSS, "encoder.layers.0.self_attention", "decoder.layers.0.self_attention"]
)
def test_a_head_of_a_transformer_that_is_off_or_uniform_is_the_model_changed_by_hand(
    layer: str,
) -> None:
    shown = translator("transformer")
    requested, by_hand = Asked(shown), ByHand(shown)
    for output in (0, 2):
        found = requested.effects(layer, f"head=1&output={output}&row=2")
        own = by_hand(output)
        names = by_hand.names
        label = names.index(found["output"])
        assert found["probability"] == pytest.approx(float(own[label].exp()), rel=1e-4)
        for name, change in (("off", without_head), ("uniform", even_head)):
            after = by_hand(output, change=lambda m: change(m.get_submodule(layer), 1, 2))  # noqa: B023
            effect = found["by"][name]
            assert effect["delta"] == pytest.approx(float(after[label] - own[label]), abs=1e-4)
            assert effect["probability"] == pytest.approx(float(after[label].exp()), rel=1e-3)
            top = after.exp().topk(5)
            assert [share for _, share in effect["top"]] == pytest.approx(
                top.values.tolist(), rel=1e-3
            )
            assert effect["top"][0][0] == names[int(top.indices[0])]


@pytest.mark.parametrize("kind", ["additive", "dot"])
def test_a_recurrent_decoder_that_is_asked_step_by_step_is_changed_in_every_step(kind: str) -> None:
    shown = translator(kind)
    requested, by_hand = Asked(shown), ByHand(shown)
    found = requested.effects("decoder.attention", "head=0&output=3&row=3&key=1&weight=0.75")
    own = by_hand(3)
    label = by_hand.names.index(found["output"])

    def given(change: Callable[[Tensor], Tensor]) -> float:
        with attlas.intervene(shown.model, lambda weights, seen, layer: change(weights)):
            return float((by_hand(3) - own)[label])

    steps = iter(range(99))

    def edited(weights: Tensor) -> Tensor:
        if next(steps) % 6 != 3:
            return weights
        row = weights[0, 0, 0].tolist()
        row = [0.75 if key == 1 else 0.25 * w / (1 - row[1]) for key, w in enumerate(row)]
        return torch.tensor(row).view_as(weights)

    count = len(requested.doubt["source"])
    assert found["by"]["uniform"]["delta"] == pytest.approx(
        given(lambda weights: torch.full_like(weights, 1 / count)), abs=1e-5
    )
    assert found["by"]["off"]["delta"] == pytest.approx(given(torch.zeros_like), abs=1e-5)
    assert len(requested.doubt["outputs"]) == 6
    assert found["by"]["weight"]["delta"] == pytest.approx(given(edited), abs=1e-5)


def test_a_gradient_is_what_a_little_more_weight_does() -> None:
    shown = translator("transformer")
    by_hand = ByHand(shown)
    found = Asked(shown).effects(CROSS, "head=1&output=2&row=1")
    label = by_hand.names.index(found["output"])
    step = 1e-3
    for key in (0, 4):
        moved = []
        for sign in (1, -1):

            def more(weights: Tensor, seen: Tensor, layer: str) -> Tensor:
                if layer == CROSS:
                    weights[0, 1, 1, key] += sign * step  # noqa: B023
                return weights

            with attlas.intervene(shown.model, more):
                moved.append(float(by_hand(2)[label]))
        slope = (moved[0] - moved[1]) / (2 * step)
        assert found["gradient"][key] == pytest.approx(slope, rel=0.05, abs=2e-3)


def test_permuted_is_the_mean_and_the_deviation_over_draws_of_the_same_weights() -> None:
    shown = translator("transformer")
    by_hand = ByHand(shown)
    found = Asked(shown).effects(CROSS, "head=0&output=1&row=0")
    own = by_hand(1)
    label = by_hand.names.index(found["output"])
    deltas = []
    for seed in range(found["draws"]):
        draw = permuted(seed)

        def one(weights: Tensor, seen: Tensor, layer: str) -> Tensor:
            if layer != CROSS:
                return weights
            new = draw(weights, seen, layer)  # noqa: B023
            return torch.cat([new[:, :1], weights[:, 1:]], 1)

        with attlas.intervene(shown.model, one):
            deltas.append(float((by_hand(1) - own)[label]))
    effect = found["by"]["permuted"]
    assert effect["delta"] == pytest.approx(sum(deltas) / len(deltas), abs=1e-4)
    assert effect["spread"] == pytest.approx(float(torch.tensor(deltas).std()), abs=1e-4)
    assert found["draws"] == 8


def test_an_erased_word_is_not_in_the_text_that_the_model_reads() -> None:
    shown = translator("transformer")
    by_hand = ByHand(shown)
    found = Asked(shown).effects(CROSS, "head=0&output=1&row=1&erased=4:5")
    own, after = by_hand(1), by_hand(1, without=4)
    label = by_hand.names.index(found["output"])
    assert found["erased"] == [4, 5]
    expected = float(after[label] - own[label])
    assert found["by"]["erased"]["delta"] == pytest.approx(expected, abs=1e-4)


def test_without_a_key_it_is_that_of_the_greatest_weight_which_is_erased_too() -> None:
    shown = translator("transformer")
    found = Asked(shown).effects(CROSS, "head=1&output=0&row=0")
    trace = shown(TEXT).trace
    assert trace is not None
    row = trace[CROSS].weights()[0, 1, 0]
    assert found["weights"] == pytest.approx(row.tolist(), abs=1e-6)
    assert found["key"] == int(row.argmax())
    assert found["erased"] == [found["key"], found["key"] + 1]
    decoder = Asked(shown).effects("decoder.layers.0.self_attention", "head=1&output=2&row=2")
    assert decoder["erased"] is None


# A classifier: an output for each label.


def classifier(pooling: str) -> TextClassifier:
    torch.manual_seed(2)
    words = Words.built([TEXT], 100)
    settings = {"embed_dim": 16, "num_heads": 2, "ffn_dim": 8, "pooling": pooling}
    model = build_classifier(ClassifierConfig.read(settings, "a test"), len(words), 3)
    labels = LabelledVocabularies(words, Labels(("bad", "fair", "good")))
    return TextClassifier.of(model, labels)


@pytest.mark.parametrize("pooling", ["mean", "attentive"])
def test_a_classifier_is_read_at_the_page_and_its_labels_are_doubted(pooling: str) -> None:
    shown = classifier(pooling)
    requested = Asked(LabellingTranslator(shown))
    said = shown(TEXT)
    assert requested.reported["text"].startswith(f"{said.label} · {100 * said.probability:.1f} %")
    assert requested.doubt["outputs"] == ["bad", "fair", "good"]
    assert requested.doubt["outputs"][requested.doubt["first"]] == said.label
    assert requested.client.get("/api/model").json()["facts"]["task"] == "classify"
    layer = "encoder.layers.0.self_attention"
    found = requested.effects(layer, "head=1&output=2&row=1&erased=1:2")
    assert found["output"] == "good"
    assert found["probability"] == pytest.approx(said.probabilities["good"], rel=1e-5)
    other = copy.deepcopy(shown.model)
    without_head(other.get_submodule(layer), 1, 2)
    ids = torch.tensor([[*shown.vocabularies.text.encode(TEXT), END]])
    with torch.no_grad():
        own, off, erased = (
            model(given)[0].double().log_softmax(-1)
            for model, given in (
                (shown.model, ids),
                (other, ids),
                (shown.model, torch.cat([ids[:, :1], ids[:, 2:]], 1)),
            )
        )
    assert found["by"]["off"]["delta"] == pytest.approx(float(off[2] - own[2]), abs=1e-5)
    assert found["by"]["erased"]["delta"] == pytest.approx(float(erased[2] - own[2]), abs=1e-5)


def test_a_text_that_is_too_long_for_the_page_is_refused_by_a_classifier_too() -> None:
    client = TestClient(app(LabellingTranslator(classifier("mean"))), base_url="http://localhost")
    answer = client.post("/api/translate", json={"text": "a " * 600})
    assert answer.status_code == 400
    assert answer.json()["expected"] == "a text of at most 512 tokens"


# Models of Hugging Face: their own softmax is changed, call by call.


@contextmanager
def softmax_changed(call: int, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """The weights of one attention call of a model that computes them itself."""
    real, calls = nn.functional.softmax, iter(range(99))

    def softmax(scores: Tensor, *parts: Any, **named: Any) -> Tensor:
        weights = real(scores, *parts, **named)
        return change(weights) if scores.dim() == 4 and next(calls) == call else weights

    nn.functional.softmax = softmax
    try:
        yield
    finally:
        nn.functional.softmax = real


@pytest.mark.parametrize(
    ("kind", "layer", "call", "output"),
    [
        ("bert", "bert.encoder.layer.1.attention.self", 1, 2),
        ("gpt2", "transformer.h.1.attn", 1, 6),
        ("bart", "model.decoder.layers.0.encoder_attn", 2, 1),
    ],
)
def test_models_of_hugging_face_are_changed_as_their_own_softmax_is_by_hand(
    tmp_path: Path, kind: str, layer: str, call: int, output: int
) -> None:
    shown = HuggingFaceModel(saved(tmp_path / kind, kind), max_new_tokens=None)
    requested = Asked(shown)
    key, row = 1, 3 if kind != "bart" else 1
    query = f"head=1&output={output}&row={row}&key={key}&weight=0.5"
    found = requested.effects(layer, query)
    run = shown(TEXT).forward_pass
    assert run is not None
    shown.model.set_attn_implementation("eager")

    def edited(weights: Tensor) -> Tensor:
        weights = weights.clone()
        own = weights[0, 1, row].clone()
        own *= 0.5 / (1 - own[key])
        own[key] = 0.5
        weights[0, 1, row] = own
        return weights

    def off(weights: Tensor) -> Tensor:
        weights = weights.clone()
        weights[:, 1] = 0.0
        return weights

    def even(weights: Tensor) -> Tensor:
        weights = weights.clone()
        seen = torch.ones_like(weights[0, 1])
        if kind == "gpt2":
            seen = seen.tril()
        weights[:, 1] = seen / seen.sum(-1, keepdim=True)
        return weights

    with torch.no_grad():
        own = run.logits(output)[0].log_softmax(-1)
        chosen = run.outputs[output].label
        label = int(own.argmax()) if chosen is None else chosen
        for name, change in (("weight", edited), ("off", off), ("uniform", even)):
            with softmax_changed(call, change):
                after = run.logits(output)[0].log_softmax(-1)
            assert found["by"][name]["delta"] == pytest.approx(
                float(after[label] - own[label]), abs=2e-6
            ), name
    assert found["probability"] == pytest.approx(math.exp(float(own[label])), rel=1e-5)


def test_an_encoder_that_was_saved_without_its_head_predicts_nothing(tmp_path: Path) -> None:
    requested = Asked(HuggingFaceModel(saved(tmp_path / "roberta", "roberta")))
    assert requested.doubt is None
    answer = requested.client.get(f"/api/maps/{requested.reported['map']}/0/doubt?output=0&row=0")
    assert answer.status_code == 400
    assert answer.json()["expected"] == "a text whose model can be run again"


def test_what_predicts_at_a_token_cannot_be_reported_without_it(tmp_path: Path) -> None:
    requested = Asked(HuggingFaceModel(saved(tmp_path / "bert", "bert")))
    layer = requested.reported["layers"][0]["name"]
    found = requested.effects(layer, "head=0&output=2&row=2&key=1&weight=0&erased=2:3")
    assert "a token that is erased" in found["by"]["erased"]["impossible"]
    assert "delta" in found["by"]["weight"]


def test_other_weights_of_the_same_output_are_searched_for_on_request() -> None:
    requested = Asked(translator("transformer"))
    reported = requested.get(CROSS, "head=0&output=1&row=1", "adversary").json()
    assert 0 < reported["divergence"] <= reported["at_most"] <= math.log(2)
    assert reported["distance"] <= 0.01
    assert reported["whole"] is True
    assert sum(reported["weights"]) == pytest.approx(1.0, abs=1e-4)
    steps = Asked(translator("additive"))
    one = steps.get("decoder.attention", "head=0&output=1&row=1", "adversary").json()
    assert one["whole"] is False


def test_the_search_for_other_weights_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    requested, query = Asked(translator("transformer")), "head=0&output=1&row=1"
    assert requested.get(CROSS, query, "adversary/progress").json() == {"share": None}
    shares: list[float | None] = []
    real = _Doubt._call

    def call(doubt: _Doubt) -> Tensor:
        shares.append(requested.get(CROSS, query, "adversary/progress").json()["share"])
        other = requested.get(CROSS, "head=1&output=1&row=1", "adversary/progress")
        assert other.json() == {"share": None}
        return real(doubt)

    monkeypatch.setattr(_Doubt, "_call", call)
    assert requested.get(CROSS, query, "adversary").status_code == 200
    told = [share for share in shares if share is not None]
    assert told == sorted(told)
    assert len(told) == len(shares)
    assert 0.8 < told[-1] <= 1.0
    assert told[len(told) // 2] == pytest.approx(0.5, abs=0.1)
    assert requested.get(CROSS, query, "adversary/progress").json() == {"share": None}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("output=0", "an output and a row"),
        ("output=99&row=0", "output as a number from 0 to 5"),
        ("output=0&row=0&head=2", "head as a number from 0 to 1"),
        ("output=0&row=0&key=-1", "key as a number"),
        ("output=0&row=0&weight=1.5", "a weight from 0 to 1"),
        ("output=0&row=0&weight=nan", "a weight from 0 to 1"),
        ("output=0&row=0&erased=3:3", "erased as start:stop within 0:12"),
        ("output=0&row=0&other=1", "one of head, output"),
        ("output=0&row=0&row=1", "each parameter once"),
    ],
)
def test_a_wrong_question_is_answered_with_what_there_is(query: str, said: str) -> None:
    answer = Asked(translator("transformer")).get(CROSS, query)
    assert answer.status_code == 400
    assert said in answer.json()["expected"]


def test_all_tokens_cannot_be_erased_and_a_query_that_sees_one_key_keeps_its_weight() -> None:
    requested = Asked(translator("transformer"))
    layer = "decoder.layers.0.self_attention"
    found = requested.effects(layer, "head=0&output=1&row=0&weight=0&erased=0:12")
    assert "not all of them" in found["by"]["erased"]["impossible"]
    assert "sees several keys" in found["by"]["weight"]["impossible"]


@pytest.mark.parametrize("kind", ["transformer", "additive"])
def test_readers_who_take_turns_get_what_each_gets_alone(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = {"transformer": [CROSS, "decoder.layers.0.self_attention"], "additive": []}[kind]
    layers = layers or ["decoder.attention"]
    shown = translator(kind)
    turns: list[int] = []
    passed_on = SearchTurns._pass_on

    def pass_on(own: SearchTurns, stop: threading.Event) -> None:
        turns.append(threading.get_ident())
        passed_on(own, stop)

    monkeypatch.setattr(SearchTurns, "_pass_on", pass_on)
    monkeypatch.setattr(doubt, "_STEPS", 6)
    monkeypatch.setattr(doubt, "_STARTS", 2)
    with serving(app(shown)) as url:
        reported = httpx.post(f"{url}api/translate", json={"text": TEXT}).json()
        names = [layer["name"] for layer in reported["layers"]]
        maps = f"{url}api/maps/{reported['map']}"
        addresses = [
            f"{maps}/{names.index(layer)}/{what}"
            for layer in layers
            for what in (
                "adversary?head=0&output=1&row=1",
                "doubt?head=0&output=1&row=1&key=0&weight=0.5",
                "mechanism?head=0&row=1&positions=0",
            )
        ]

        def answered(address: str) -> Any:
            found = httpx.get(address, timeout=120)
            assert found.status_code == 200, found.json()
            return found.json()

        def translated(_: str) -> Any:
            found = httpx.post(f"{url}api/translate", json={"text": TEXT}, timeout=120).json()
            return {**found, "map": None}

        asked: list[tuple[Callable[[str], Any], str]] = [(answered, one) for one in addresses]
        asked.append((translated, ""))
        alone = [ask(address) for ask, address in asked]
        turns.clear()
        with ThreadPoolExecutor(4 * len(asked)) as threads:
            together = [threads.submit(ask, address) for _ in range(2) for ask, address in asked]
            results = [one.result() for one in together]
    changes = sum(one != other for one, other in itertools.pairwise(turns))
    assert changes > 20  # they took turns indeed
    for number, result in enumerate(results):
        assert result == alone[number % len(asked)], asked[number % len(asked)]


def test_no_weight_is_set_without_a_share() -> None:
    found = Asked(translator("transformer")).effects(CROSS, "head=0&output=1&row=1&key=2")
    assert list(found["by"]) == ["uniform", "permuted", "off", "erased"]
    assert found["key"] == 2


def test_a_trace_has_no_model_to_be_run_again() -> None:
    model = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(1, 3, 8)
    with attlas.observe(model) as trace:
        model(x, x, x)
    with TestClient(app(trace), base_url="http://localhost") as client:
        reported = client.get("/api/texts/0").json()
        assert "doubt" not in reported
        assert client.get(f"/api/maps/{reported['map']}/0/doubt?output=0&row=0").status_code == 404


def test_what_nobody_waits_for_is_given_up_between_two_runs_of_the_model() -> None:
    shown = translator("transformer")
    run = shown(TEXT).forward_pass
    assert run is not None
    turns = SearchTurns()
    stop = threading.Event()
    runs = 0
    real = type(shown.model).encode

    def encode(model: Any, *parts: Any, **named: Any) -> Any:
        nonlocal runs
        runs += 1
        stop.set()
        return real(model, *parts, **named)

    trace = shown(TEXT).trace
    assert trace is not None
    layer = TextMaps.of(trace).layers[0]
    type(shown.model).encode = encode
    try:
        with pytest.raises(PassCancelledError), turns.taken(stop) as next_turn:
            _Doubt(run, layer, Question(0, 0, 0), next_turn).answer()
    finally:
        type(shown.model).encode = real
    assert runs == 1

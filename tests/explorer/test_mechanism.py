"""How the weights of a row came about: the numbers that are sent satisfy their formula."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

import attlas
from attlas.data import LabelledVocabularies
from attlas.data.vocabularies import Labels
from attlas.data.vocabulary import Words
from attlas.explorer import app, mechanism
from attlas.explorer.backends import LabellingTranslator
from attlas.explorer.maps import TextMaps
from attlas.explorer.notebook import TraceAnswers
from attlas.explorer.positions import ADDED, BIASED, ROTATED
from attlas.inference import TextClassifier, Translator
from attlas.inference.huggingface import HuggingFaceModel
from attlas.layers import RotaryPositions
from attlas.models import (
    ClassifierConfig,
    build_classifier,
)
from attlas.patterns import causal, everywhere, window
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace
from support.small_models import SIZE, saved, tokenizer
from support.small_models import model as small_model
from support.small_translators import small_translator

TEXT = "the cat sat"


def translator(kind: str, **settings: Any) -> Translator:
    return small_translator(kind, model=settings, max_len_a=0, max_len_b=6, min_length=6)


class Asked:
    """A text that was read at the page, and what is asked of it."""

    def __init__(self, shown: Any, text: str = TEXT) -> None:
        self.client = TestClient(app(shown), base_url="http://localhost")
        if isinstance(shown, Trace):
            self.reported = self.client.get("/api/texts/0").json()
        else:
            self.reported = self.client.post("/api/translate", json={"text": text}).json()
        self.names = [layer["name"] for layer in self.reported["layers"]]

    def get(self, layer: str, query: str) -> Any:
        address = f"/api/maps/{self.reported['map']}/{self.names.index(layer)}/mechanism?{query}"
        return self.client.get(address)

    def row(self, layer: str, head: int, row: int, key: int | None = None) -> dict[str, Any]:
        more = "" if key is None else f"&key={key}"
        answer = self.get(layer, f"head={head}&row={row}{more}")
        assert answer.status_code == 200, answer.json()
        found: dict[str, Any] = answer.json()
        assert found["missing"] == ""
        return found

    def weights(self, layer: str, head: int, row: int) -> list[float]:
        """Those of the map, as the page gets them."""
        from attlas.explorer.tiles import unpack

        index = self.names.index(layer)
        part = f"heads={head}:{head + 1}&rows={row}:{row + 1}"
        tile = self.client.get(f"/api/maps/{self.reported['map']}/{index}?{part}")
        found: list[float] = unpack(tile.content)[0, 0].tolist()
        return found


def scores_of(found: dict[str, Any]) -> torch.Tensor:
    """cap(scale · product) + bias of every key."""
    keys = found["keys"]
    product = torch.tensor(keys["product"], dtype=torch.float64) * found["scale"]
    if found["softcap"] is not None:
        product = found["softcap"] * torch.tanh(product / found["softcap"])
    bias = keys["bias"] or [0.0] * len(keys["product"])
    return product + torch.tensor([number or 0.0 for number in bias], dtype=torch.float64)


def check(found: dict[str, Any], weights: list[float]) -> None:
    """Every number that was sent is what the formula makes of the others."""
    keys = found["keys"]
    scores = torch.tensor(keys["score"], dtype=torch.float64)
    torch.testing.assert_close(scores, scores_of(found), atol=2e-5, rtol=1e-5)
    seen = torch.tensor([why == "" for why in keys["hidden"]])
    again = torch.zeros_like(scores)
    if bool(seen.any()):
        rest = [] if found["left"]["log_sum"] is None else [found["left"]["log_sum"]]
        every = torch.cat([scores[seen], torch.tensor(rest, dtype=torch.float64)])
        again[seen] = every.softmax(0)[: int(seen.sum())]
    sent = torch.tensor(keys["weight"], dtype=torch.float64)
    torch.testing.assert_close(again, sent, atol=1e-6, rtol=1e-5)
    of_map = torch.tensor([weights[key] for key in keys["index"]], dtype=torch.float64)
    torch.testing.assert_close(sent, of_map, atol=1e-5, rtol=0)
    query = torch.tensor(found["query"], dtype=torch.float64)
    for place, vector in zip(found["shown"], found["vectors"], strict=True):
        key = torch.tensor(vector, dtype=torch.float64)
        if found["energy"] is None:
            product = float(query @ key)
        else:
            energy = torch.tensor(found["energy"], dtype=torch.float64)
            product = float(energy @ torch.tanh(query + key))
        reported = keys["product"][keys["index"].index(place)]
        assert product == pytest.approx(reported, abs=1e-4, rel=1e-4)


def check_context(found: dict[str, Any]) -> None:
    """Σ w v, of a row all of whose keys that are seen were sent with their values."""
    keys = found["keys"]
    of = dict(zip(keys["index"], keys["weight"], strict=True))
    assert {key for key, weight in of.items() if weight > 0} <= set(found["shown"])
    values = torch.tensor(found["values"], dtype=torch.float64)
    weights = torch.tensor([of[key] for key in found["shown"]], dtype=torch.float64)
    context = torch.tensor(found["context"], dtype=torch.float64)
    torch.testing.assert_close(weights @ values, context, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "layer",
    [
        "encoder.layers.0.self_attention",
        "decoder.layers.0.self_attention",
        "decoder.layers.0.cross_attention",
    ],
)
def test_a_transformer_of_attlas_with_its_values(layer: str) -> None:
    requested = Asked(translator("transformer"))
    for head, row in ((0, 0), (1, 3)):
        found = requested.row(layer, head, row)
        assert found["form"] == "scaled"
        assert found["scale"] == pytest.approx(8**-0.5)
        check(found, requested.weights(layer, head, row))
        check_context(found)
        hidden = found["keys"]["hidden"]
        if layer.startswith("decoder.layers.0.self"):
            assert hidden == [""] * (row + 1) + ["causal"] * (len(hidden) - row - 1)
        else:
            assert set(hidden) == {""}


def test_the_context_of_all_heads_is_what_the_output_projection_reads() -> None:
    shown = translator("transformer")
    requested, layer = Asked(shown), "encoder.layers.0.self_attention"
    read: list[torch.Tensor] = []
    module = shown.model.get_submodule(layer).out_proj
    handle = module.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    run = shown(TEXT).forward_pass
    assert run is not None
    with torch.no_grad():
        run.logits(0)
    handle.remove()
    contexts = [requested.row(layer, head, 2)["context"] for head in (0, 1)]
    assert contexts[0] + contexts[1] == pytest.approx(read[0][0, 2].tolist(), abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("additive", {}),
        ("additive", {"coverage": True}),
        ("dot", {"decoder": "luong"}),
        ("general", {"decoder": "luong"}),
        ("concat", {"decoder": "luong"}),
        ("local", {"decoder": "luong", "local": {"centre": "monotonic", "radius": 2}}),
        ("local", {"decoder": "luong", "local": {"centre": "predictive", "radius": 2}}),
    ],
)
def test_additive_scores_and_luongs_are_read_while_the_model_runs_again(
    kind: str, settings: dict[str, Any]
) -> None:
    shown = translator(kind, **settings)
    requested = Asked(shown)
    for row in (0, 4):
        found = requested.row("decoder.attention", 0, row)
        if kind != "local":
            assert found["form"] == kind
            assert found["keys"]["bias"] is None
            assert set(found["keys"]["hidden"]) == {""}
        elif row == 4:
            assert "outside of the local window" in found["keys"]["hidden"]
        assert (found["energy"] is not None) == (kind in ("additive", "concat"))
        check(found, requested.weights("decoder.attention", 0, row))
        check_context(found)
    assert "masked_scores" not in vars(shown.model.get_submodule("decoder.attention"))


@pytest.mark.parametrize("pooling", ["mean", "attentive"])
def test_a_classifier(pooling: str) -> None:
    torch.manual_seed(2)
    words = Words.built([TEXT], 100)
    settings = {"embed_dim": 16, "num_heads": 2, "ffn_dim": 8, "pooling": pooling}
    model = build_classifier(ClassifierConfig.read(settings, "a test"), len(words), 2)
    labels = LabelledVocabularies(words, Labels(("bad", "good")))
    requested = Asked(LabellingTranslator(TextClassifier.of(model, labels)))
    layer = "encoder.layers.0.self_attention" if pooling == "mean" else "pooling.attention"
    found = requested.row(layer, 0, 0)
    check(found, requested.weights(layer, 0, 0))
    check_context(found)


def gemma2(folder: Path) -> Path:
    """A softcap, grouped keys, and a sliding window in every other layer."""
    import transformers as hf

    from support.small_models import SIZE, tokenizer

    torch.manual_seed(11)
    config = hf.Gemma2Config(
        vocab_size=SIZE, pad_token_id=0, bos_token_id=2, eos_token_id=3, hidden_size=16,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=4,
        intermediate_size=24, max_position_embeddings=24, sliding_window=3,
        attn_logit_softcapping=2.0, query_pre_attn_scalar=4,
    )  # fmt: skip
    hf.Gemma2ForCausalLM(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def bloom(folder: Path) -> Path:
    """ALiBi."""
    import transformers as hf

    torch.manual_seed(11)
    config = hf.BloomConfig(
        vocab_size=SIZE, pad_token_id=0, bos_token_id=2, eos_token_id=3, hidden_size=16,
        n_layer=2, n_head=4,
    )  # fmt: skip
    hf.BloomForCausalLM(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def mpt(folder: Path) -> Path:
    """ALiBi, as an argument of another name."""
    import transformers as hf

    torch.manual_seed(11)
    config = hf.MptConfig(
        vocab_size=SIZE, pad_token_id=0, bos_token_id=2, eos_token_id=3, d_model=16, n_layers=2,
        n_heads=4, max_seq_len=64,
    )  # fmt: skip
    hf.MptForCausalLM(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def two_layers_of_t5(folder: Path) -> Path:
    """A bias of distances, which the first layer makes and the others get."""
    import transformers as hf

    torch.manual_seed(11)
    config = hf.T5Config(
        vocab_size=SIZE, pad_token_id=0, bos_token_id=2, eos_token_id=3, d_model=16, d_kv=4,
        d_ff=24, num_layers=2, num_heads=4, decoder_start_token_id=2,
    )  # fmt: skip
    model = hf.T5ForConditionalGeneration(config)
    for name, one in model.named_parameters():
        if "relative_attention_bias" in name:
            torch.nn.init.normal_(one)
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "bart", "t5", "gemma2", "bloom"])
def test_models_of_hugging_face(tmp_path: Path, kind: str) -> None:
    makers = {"gemma2": gemma2, "bloom": bloom}
    folder = makers[kind](tmp_path) if kind in makers else saved(tmp_path, kind)
    requested = Asked(HuggingFaceModel(folder), "the cat sat on a mat")
    for layer, described in zip(requested.names, requested.reported["layers"], strict=True):
        for head, row in ((0, 1), (3 % described["heads"], described["queries"] - 1)):
            found = requested.row(layer, head, row)
            assert found["no_values"] == ""
            check(found, requested.weights(layer, head, row))
            if found["keys"]["hidden"].count("") <= 24:
                check_context(found)
    first = requested.row(requested.names[0], 0, 1)
    assert (first["softcap"] is not None) == (kind == "gemma2")
    biased = [requested.row(layer, 0, 1)["keys"]["bias"] is not None for layer in requested.names]
    assert any(biased) == (kind in ("t5", "bloom"))
    if kind == "gemma2":
        last = requested.reported["layers"][0]["queries"] - 1
        hidden = [requested.row(layer, 0, last)["keys"]["hidden"] for layer in requested.names]
        assert sorted(row.count("") for row in hidden) == [3, last + 1]


# Traces, which have queries and keys alone.


def traced(**how: Any) -> Trace:
    generator = torch.Generator().manual_seed(3)
    query, keys = 2 * torch.randn(2, 1, 2, 7, 4, generator=generator)
    trace = Trace()
    settings = {"pattern": everywhere, "query_offset": 0, "scale": 0.5, **how}
    trace.record("layer", FactoredAttentionMap(query, keys, **settings))
    return trace


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({}, None),
        ({"pattern": causal}, "causal"),
        ({"pattern": window(1)}, "window(1)"),
        ({"softcap": 1.5}, None),
        ({"token_mask": torch.tensor([[True] * 5 + [False] * 2])}, "padding"),
        ({"bias": torch.linspace(-1, 1, 49).view(1, 1, 7, 7)}, None),
        ({"bias": torch.rand(1, 1, 7, 7) > 0.5}, "mask"),
        ({"bias": torch.zeros(1, 1, 7, 7).masked_fill(torch.eye(7) > 0, -torch.inf)}, "mask"),
        ({"bias": torch.full((1, 1, 7, 7), torch.finfo(torch.float32).min)}, None),
    ],
)
def test_whatever_a_trace_holds_is_said_as_it_is(how: dict[str, Any], reason: str | None) -> None:
    requested = Asked(traced(**how))
    reasons: set[str] = set()
    for row in range(7):
        found = requested.row("layer", 1, row)
        check(found, requested.weights("layer", 1, row))
        reasons |= set(found["keys"]["hidden"])
        assert found["values"] is None
        assert found["no_values"] == "the map holds queries and keys, no values"
    assert reasons - {""} == ({reason} if reason else set())


def test_of_many_keys_those_that_matter_are_sent_and_the_rest_is_summed_up() -> None:
    generator = torch.Generator().manual_seed(3)
    query, keys = torch.randn(1, 1, 1, 300, generator=generator), torch.randn(1, 1, 3000, 300)
    trace = Trace()
    trace.record("layer", FactoredAttentionMap(query, keys, 300**-0.5, everywhere, 0))
    requested = Asked(trace)
    found = requested.row("layer", 0, 0, key=2999)
    assert len(found["keys"]["index"]) in (1024, 1025)
    assert found["left"]["seen"] == 3000 - len(found["keys"]["index"])
    assert 2999 in found["shown"]
    assert len(found["shown"]) in (24, 25)
    assert found["width"] == 300
    assert {len(vector) for vector in (*found["vectors"], found["query"])} == {256}
    sent = torch.tensor(found["keys"]["score"], dtype=torch.float64)
    total = torch.cat([sent, torch.tensor([found["left"]["log_sum"]], dtype=torch.float64)])
    again = (sent - total.logsumexp(0)).exp()
    torch.testing.assert_close(
        again, torch.tensor(found["keys"]["weight"], dtype=torch.float64), atol=1e-7, rtol=1e-5
    )
    weights = trace["layer"].weights()[0, 0, 0]
    assert min(weights[found["keys"]["index"]][:-1]) >= weights.topk(1025).values[-1]


def test_a_map_of_weights_alone_says_what_is_missing() -> None:
    trace = Trace()
    trace.record("layer", DenseAttentionMap(torch.eye(3)[None, None]))
    answer = Asked(trace).get("layer", "head=0&row=0")
    assert answer.status_code == 200
    assert "holds weights alone" in answer.json()["missing"]


def test_a_notebook_asks_the_same_by_a_message() -> None:
    trace = traced(pattern=causal)
    answers = TraceAnswers(trace)
    query = {"head": "1", "row": "3", "key": "2"}
    said, content = answers.answer({"ask": "mechanism", "map": "0", "layer": 0, "query": query})
    assert content is None
    assert said == Asked(trace).row("layer", 1, 3, key=2)
    wrong, _ = answers.answer({"ask": "mechanism", "map": "0", "layer": 0, "query": {"row": "9"}})
    assert wrong["error"]["expected"] == "row as a number from 0 to 6"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("row=0", "a head and a row"),
        ("head=0", "a head and a row"),
        ("head=2&row=0", "head as a number from 0 to 1"),
        ("head=0&row=7", "row as a number from 0 to 6"),
        ("head=0&row=0&key=x", "key as a number from 0 to 6"),
        ("head=0&row=0&other=1", "one of head, row, key"),
        ("head=0&row=0&row=1", "each parameter once"),
    ],
)
def test_a_wrong_question_is_answered_with_what_there_is(query: str, said: str) -> None:
    answer = Asked(traced()).get("layer", query)
    assert answer.status_code == 400
    assert said in answer.json()["expected"]


def test_a_layer_that_is_observed_without_attlas_is_reported_the_same() -> None:
    torch.manual_seed(0)
    model = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(1, 5, 8)
    with attlas.observe(model) as trace:
        model(x, x, x, need_weights=False)
    requested = Asked(trace)
    found = requested.row(requested.names[0], 1, 2)
    check(found, requested.weights(requested.names[0], 1, 2))
    projected = (x @ model.in_proj_weight[:8].T + model.in_proj_bias[:8])[0, 2, 4:]
    assert found["query"] == pytest.approx(projected.tolist(), abs=1e-5)
    assert math.isclose(found["scale"], 0.5, rel_tol=1e-6)


def test_a_row_is_explained_while_another_thread_records_the_calls_of_the_same_layer() -> None:
    shown = translator("additive")
    translation = shown(TEXT)
    run, attention = translation.forward_pass, shown.model.get_submodule("decoder.attention")
    assert run is not None
    (layer,) = TextMaps.of(translation.trace).layers
    with torch.no_grad():
        with mechanism.recorded_scores(attention) as calls:
            run.logits(0)
        alone = mechanism.row_of_scored(attention, calls, layer, 2)
        with mechanism.recorded_scores(attention) as others:
            meanwhile = mechanism.row_of_scored(attention, calls, layer, 2)
        assert others == []
    torch.testing.assert_close(meanwhile.weights, alone.weights, rtol=0, atol=0)


# Without positions.


def without(requested: Asked, layer: str, head: int, row: int) -> tuple[dict[str, Any], Any]:
    """A row as it is, and the products that it has without positions."""
    answer = requested.get(layer, f"head={head}&row={row}&positions=0")
    assert answer.status_code == 200, answer.json()
    return requested.row(layer, head, row), answer.json()


def turned(vector: list[float], place: int) -> list[float]:
    rotation = RotaryPositions(len(vector))
    found: list[float] = rotation(torch.tensor([vector]), place)[0].tolist()
    return found


def test_a_rotation_is_left_out_of_a_layer_of_attlas() -> None:
    requested = Asked(translator("transformer", positions="rotary"))
    layer = "decoder.layers.0.self_attention"
    placed, bare = without(requested, layer, 1, 3)
    assert placed["positions"] == bare["positions"] == ROTATED
    assert turned(bare["query"], 3) == pytest.approx(placed["query"], abs=1e-5)
    for place, own, other in zip(bare["shown"], bare["vectors"], placed["vectors"], strict=True):
        assert turned(own, place) == pytest.approx(other, abs=1e-5)
    product = bare["keys"]["product"]
    assert product != pytest.approx(placed["keys"]["product"], abs=1e-3)
    weights = (0.125**0.5 * torch.tensor(product[:4])).softmax(0).tolist()
    check(bare, [*weights, 0.0, 0.0])
    assert bare["values"] is None
    assert "with its positions" in bare["no_values"]
    assert requested.row(layer, 1, 3) == placed  # the model is as it was
    # Beside it the row as it is, of the same keys.
    assert bare["placed"] == {name: placed[name] for name in ("keys", "left")}
    assert placed["placed"] is None


def test_of_many_keys_those_stand_beside_each_other_that_matter_with_or_without_positions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mechanism, "_MOST_KEYS", 4)
    monkeypatch.setattr(mechanism, "_SHOWN", 3)
    requested = Asked(translator("transformer", positions="rotary"), "the cat sat on the mat")
    layer = "encoder.layers.0.self_attention"
    _, bare = without(requested, layer, 1, 3)
    with_, without_ = bare["placed"]["keys"], bare["keys"]
    assert with_["index"] == without_["index"]
    assert len(with_["index"]) == 4
    whole = requested.weights(layer, 1, 3)
    for one, left in ((with_, bare["placed"]["left"]), (without_, bare["left"])):
        assert left["seen"] == len(whole) - 4
        total = torch.tensor(one["score"]).exp().sum() + math.exp(left["log_sum"])
        weights = torch.tensor(one["score"]).exp() / total
        assert weights.tolist() == pytest.approx(one["weight"], abs=1e-5)
    most = max(range(len(whole)), key=whole.__getitem__)
    assert most in with_["index"]


def test_a_rotation_is_left_out_of_a_layer_of_hugging_face(tmp_path: Path) -> None:
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    shown = HuggingFaceModel(saved(tmp_path, "llama"))
    requested = Asked(shown, "the cat sat on a mat")
    angles = shown.model.model.rotary_emb
    for layer in requested.names:
        placed, bare = without(requested, layer, 2, 4)
        assert placed["positions"] == ROTATED
        query = torch.tensor(bare["query"]).expand(1, 1, 1, -1)
        keys = torch.tensor(bare["vectors"])[None, None]
        at_row = angles(keys, torch.tensor([[4]]))
        at_keys = angles(keys, torch.tensor([bare["shown"]]))
        again = apply_rotary_pos_emb(query, query, *at_row)[0].flatten().tolist()
        assert again == pytest.approx(placed["query"], abs=1e-5)
        again = apply_rotary_pos_emb(keys, keys, *at_keys)[1].flatten().tolist()
        assert again == pytest.approx(
            [one for vector in placed["vectors"] for one in vector], abs=1e-5
        )


@pytest.mark.parametrize("kind", ["bert", "bart"])
def test_positions_are_left_out_of_the_input_of_a_model(tmp_path: Path, kind: str) -> None:
    shown = HuggingFaceModel(saved(tmp_path / "whole", kind))
    requested = Asked(shown, "the cat sat on a mat")
    tables = [one for name, one in shown.model.named_modules() if name.endswith("positions")]
    tables += [one for name, one in shown.model.named_modules() if name.endswith("_embeddings")]
    tables = [one for one in tables if isinstance(one, torch.nn.Embedding)]
    bare = {name: without(requested, name, 1, 3) for name in requested.names}
    assert {placed["positions"] for placed, _ in bare.values()} == {ADDED}
    for one in tables:
        if one.num_embeddings >= 24:
            torch.nn.init.zeros_(one.weight)
    again = Asked(shown, "the cat sat on a mat")
    for name, (placed, found) in bare.items():
        if "decoder" in name:
            continue  # another text is written
        expected = again.row(name, 1, 3)
        assert found["query"] == pytest.approx(expected["query"], abs=1e-5)
        assert found["keys"]["product"] == pytest.approx(expected["keys"]["product"], abs=1e-5)
        assert found["keys"]["product"] != pytest.approx(placed["keys"]["product"], abs=1e-4)


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_positions_are_left_out_of_the_input_of_a_translator(positions: str) -> None:
    requested = Asked(translator("transformer", positions=positions))
    layer = "encoder.layers.0.self_attention"
    _, bare = without(requested, layer, 0, 2)
    assert bare["positions"] == ADDED
    # The text has "t" three times: without positions these are alike.
    alike = [place for place, letter in enumerate("the cat sat") if letter == "t"]
    first, *others = (bare["keys"]["product"][place] for place in alike)
    assert others == pytest.approx([first] * 2, abs=1e-5)
    kept = requested.row(layer, 0, 2)["keys"]["product"]
    assert kept[alike[0]] != pytest.approx(kept[alike[1]], abs=1e-4)


@pytest.mark.parametrize("kind", ["t5", "bloom", "mpt"])
def test_a_bias_of_distances_is_left_out_of_a_layer(tmp_path: Path, kind: str) -> None:
    folder = {"bloom": bloom, "mpt": mpt}.get(kind, two_layers_of_t5)(tmp_path)
    requested = Asked(HuggingFaceModel(folder), "the cat sat on a mat")
    layers = [name for name in requested.names if not name.endswith("EncDecAttention")]
    assert len(layers) >= 2
    for layer in layers:
        placed, bare = without(requested, layer, 1, 2)
        assert placed["positions"] == bare["positions"] == BIASED
        assert bare["query"] == pytest.approx(placed["query"], abs=1e-6)
        assert bare["keys"]["product"] == pytest.approx(placed["keys"]["product"], abs=1e-5)
        # By hand: softmax(scale · q k) over the keys that are seen.
        seen = [why == "" for why in placed["keys"]["hidden"]]
        scores = torch.tensor(placed["keys"]["product"]) * placed["scale"]
        weights = scores.masked_fill(~torch.tensor(seen), -torch.inf).softmax(0)
        assert bare["keys"]["weight"] == pytest.approx(weights.tolist(), abs=1e-5)
        assert bare["keys"]["weight"] != pytest.approx(placed["keys"]["weight"], abs=1e-3)
        assert bare["placed"]["keys"] == placed["keys"]
        assert requested.row(layer, 1, 2) == placed  # the model is as it was


@pytest.mark.parametrize("kind", ["roberta", "bert"])
def test_an_encoder_that_gives_vectors_alone_shows_values_and_rows_without_positions(
    tmp_path: Path, kind: str
) -> None:
    folder = saved(tmp_path, kind)
    small_model(kind).base_model.save_pretrained(folder)  # BERT's head is gone
    shown = HuggingFaceModel(folder)
    requested = Asked(shown, "the cat sat on a mat")
    assert requested.reported["doubt"] is None
    bare = {name: without(requested, name, 1, 3) for name in requested.names}
    for placed, _ in bare.values():
        check_context(placed)
        assert placed["positions"] == ADDED
    tables = [
        one for name, one in shown.model.named_modules() if name.endswith("position_embeddings")
    ]
    assert len(tables) == 1
    torch.nn.init.zeros_(tables[0].weight)
    again = Asked(shown, "the cat sat on a mat")
    for name, (placed, found) in bare.items():
        expected = again.row(name, 1, 3)["keys"]
        assert found["keys"]["product"] == pytest.approx(expected["product"], abs=1e-5)
        assert found["keys"]["product"] != pytest.approx(placed["keys"]["product"], abs=1e-4)


def test_where_no_positions_can_be_left_out_it_says_why(tmp_path: Path) -> None:
    recurrent = Asked(translator("additive"))
    _, found = without(recurrent, "decoder.attention", 0, 2)
    assert found["positions"] == ""
    assert "word after word" in found["no_positions"]
    requested = Asked(HuggingFaceModel(saved(tmp_path, "t5")), "the cat sat")
    (across,) = (name for name in requested.names if name.endswith("EncDecAttention"))
    placed, found = without(requested, across, 0, 1)
    assert found["positions"] == ""
    assert "adds no bias of distances" in found["no_positions"]
    assert found == placed
    _, found = without(Asked(traced()), "layer", 0, 1)
    assert found["positions"] == ""
    assert found["no_positions"].startswith("queries and keys were recorded")
    assert requested.get(requested.names[0], "head=0&row=1&positions=2").status_code == 400

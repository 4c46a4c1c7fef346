"""Translating by CTranslate2."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from attlas.data import UNKNOWN
from attlas.decoding import DecodingConfig
from attlas.decoding.scoring import Penalties
from attlas.errors import AttlasError
from attlas.export import export
from attlas.inference import Translation, Translator
from attlas.inference.ctranslate2 import FastTranslator
from attlas.runs import Run
from support.exportable import JOINT, leaning, run_of, small

RECIPE = """
[data]
kind = "shipped"

[vocabulary]
size = 1000

[batching]
max_tokens = 1024

[model]
kind = "transformer"
embed_dim = 64
num_heads = 4
ffn_dim = 128
encoder_layers = 1
decoder_layers = 2
dropout = 0.0
tie_source = true

[training]
max_steps = 500
learning_rate = 8e-3
threads = 1

[training.schedule]
kind = "linear"
warmup = 50
total_steps = 500

[training.validation]
sentences = 50
"""


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A run that has learned some German, and is as unsure of it as a model of real text is, with
    its exports; and English sentences.
    """
    from attlas.training import read_recipe, train

    folder = tmp_path_factory.mktemp("learned")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    recipe = read_recipe(folder / "recipe.toml")
    path = train(recipe, folder / "run").path
    for quantization in ("float32", "int8"):
        export(path, "ctranslate2", folder / quantization, quantization=quantization)
    return folder, [pair.source for pair in recipe.data.corpus("test").pairs[:400]]


def lists(translator: Translator, texts: list[str]) -> list[list[str]]:
    """The n-best list of each text."""
    found = translator.stream(texts)
    return [[one.text, *(other.text for other in one.alternatives)] for one in found]


def equal(ours: list[Any], theirs: list[Any]) -> float:
    """The share of texts of which both say the same."""
    same = [one == other for one, other in zip(ours, theirs, strict=True)]
    return sum(same) / len(same)


@pytest.mark.slow
@pytest.mark.xdist_group("learned")  # once
@pytest.mark.parametrize(
    "settings",
    [
        {"method": "greedy"},
        {"num_beams": 5, "length_penalty": 0.0},
        {"num_beams": 5, "length_penalty": 0.6},
        {"num_beams": 5},
        {"num_beams": 5, "n_best": 3},
    ],
    ids=str,
)
def test_the_same_lines_come_out(learned: tuple[Path, list[str]], settings: dict[str, Any]) -> None:
    folder, texts = learned
    config = DecodingConfig(**settings)
    ours = lists(Translator(folder / "run", config), texts)
    assert len(set(map(tuple, ours))) > 0.9 * len(texts)  # it says something
    fast = FastTranslator(folder / "run", folder / "float32", config)
    whole = lists(fast, texts)
    for one, other in zip(
        Translator(folder / "run", config).stream(texts[:100]),
        fast.stream(texts[:100]),
        strict=True,
    ):
        if one.tokens == other.tokens:
            assert other.score == pytest.approx(one.score, abs=1e-4)
    rounded = lists(FastTranslator(folder / "run", folder / "int8", config), texts)
    assert equal(ours, whole) >= 0.995
    assert equal([best for best, *_ in ours], [best for best, *_ in rounded]) >= 0.75


@pytest.fixture
def exported(tmp_path: Path) -> Callable[..., tuple[Run, Path]]:
    """A run of a model with random weights, and its export."""

    def make(**settings: Any) -> tuple[Run, Path]:
        run = run_of(tmp_path / "run", small(tie_source=True, **settings), num_beams=3)
        export(run, "ctranslate2", tmp_path / "out")
        return run, tmp_path / "out"

    return make


TEXTS = ["b1 b2 b3", "", "b4", "b5 b6 unheard b8 b9", "b1"]


def test_the_score_and_the_probability_are_those_of_the_hypothesis(
    exported: Callable[..., tuple[Run, Path]],
) -> None:
    run, folder = exported()
    config = DecodingConfig(num_beams=3, n_best=3, max_len_a=0.0, max_len_b=6)
    model, vocabulary = run.model(), JOINT.target
    for text, one in zip(TEXTS, FastTranslator(run, folder, config).stream(TEXTS), strict=True):
        for found in (one, *one.alternatives) if text else ():
            ids = [2, *vocabulary.encode(found.text), *[3][: int(found.finished)]]
            source = torch.tensor([[*vocabulary.encode(text), 3]])
            with torch.no_grad():
                logits = model(source, torch.tensor([ids[:-1]]))[0]
            sure = logits.log_softmax(-1).gather(1, torch.tensor(ids[1:]).unsqueeze(1)).sum()
            assert found.log_probability == pytest.approx(float(sure), abs=1e-3)
            token_mask = torch.ones(1, 1, dtype=torch.bool)
            expected = Penalties(config.length_penalty, 0.0).score(
                torch.tensor([found.log_probability]), len(ids) - 1, None, token_mask
            )
            assert found.score == pytest.approx(float(expected), rel=1e-5)
            assert len(found.tokens) - int(found.finished) <= 6


def test_finished_hypotheses_come_first_and_then_the_better_ones(
    exported: Callable[..., tuple[Run, Path]],
) -> None:
    run, folder = exported()
    config = DecodingConfig(num_beams=5, n_best=5)
    for one in FastTranslator(run, folder, config).stream(TEXTS):
        order = [(not each.finished, -each.score) for each in (one, *one.alternatives)]
        assert order == sorted(order)


def test_traces_and_alignments_come_from_our_model(
    exported: Callable[..., tuple[Run, Path]],
) -> None:
    run, folder = exported()
    translation = FastTranslator(run, folder)("b1 b2 b3")
    assert translation.trace is not None
    assert translation.pharaoh is not None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "sample"}, 'method = "beam" or "greedy"'),
        ({"coverage_penalty": 0.2}, "no coverage_penalty .*set decoding.coverage_penalty = 0.0"),
        ({"no_repeat_ngram": 2}, "no no_repeat_ngram .*set decoding.no_repeat_ngram = 0"),
        ({"autocast": "bf16"}, "numbers are those of its export; got 'bf16'"),
        ({"exhaustive": True}, "no exhaustive .*exhaustive = true; set .*exhaustive = false"),
    ],
)
def test_a_search_that_ctranslate2_does_not_know_is_refused(
    exported: Callable[..., tuple[Run, Path]], settings: dict[str, Any], message: str
) -> None:
    run, folder = exported()
    with pytest.raises(AttlasError, match=message):
        FastTranslator(run, folder, DecodingConfig(**settings))


def test_with_a_prefix_attlas_searches(exported: Callable[..., tuple[Run, Path]]) -> None:
    run, folder = exported()
    found = FastTranslator(run, folder)("b1 b2", prefix="b3")
    assert found == Translator(run)("b1 b2", prefix="b3")
    assert found.text.startswith("b3")


def test_a_text_beyond_the_learned_positions_is_cut_and_the_cut_is_reported(
    exported: Callable[..., tuple[Run, Path]],
) -> None:
    learned = FastTranslator(*exported(positions="learned", max_positions=8))
    for length, cut in ((7, 0), (8, 1), (20, 13)):
        found = learned(" ".join(["b1"] * length))
        assert len(found.source_tokens) == 8
        assert found.cut == cut


def test_what_is_too_long_for_ctranslate2_is_translated_as_attlas_does_and_stops_no_other_text(
    exported: Callable[..., tuple[Run, Path]],
) -> None:
    run, folder = exported()
    config = DecodingConfig(num_beams=2, n_best=2, max_len_a=0.0, max_len_b=3)
    texts = ["b4", " ".join(["b1", "b2"] * 512), "b1 b2 b3", " ".join(["b3"] * 1030)]
    ours, fast = Translator(run, config), FastTranslator(run, folder, config)
    assert lists(fast, texts)[1::2] == lists(ours, texts)[1::2]
    assert lists(fast, texts)[::2] == lists(fast, texts[::2])
    for one, other in zip(fast.stream(texts[1::2]), ours.stream(texts[1::2]), strict=True):
        assert one.score == pytest.approx(other.score, rel=1e-3)
        assert one.cut == 0


def test_a_translation_ends_with_the_learned_positions_as_that_of_attlas_does(
    exported: Callable[..., tuple[Run, Path]],
) -> None:
    """With a length penalty the sums of such a hypothesis are asked for, begin token and all."""
    run, folder = exported(positions="learned", max_positions=12)
    for settings in ({"method": "greedy"}, {"num_beams": 3, "n_best": 2, "length_penalty": 1.0}):
        config = DecodingConfig(max_len_b=40, min_length=11, **settings)
        texts = ["b1 b2 b3", "b5 b9"]
        found = lists(FastTranslator(run, folder, config), texts)
        if config.method == "greedy":
            assert found == lists(Translator(run, config), texts)
        assert {len(text.split()) for each in found for text in each} <= {10, 11}  # END or none


def test_a_translation_that_may_be_longer_than_ctranslate2_can_write_is_left_to_attlas(
    exported: Callable[..., tuple[Run, Path]],
) -> None:
    run, folder = exported()
    config = DecodingConfig(
        num_beams=2, length_penalty=1.0, max_len_a=0.0, max_len_b=1030, min_length=1026
    )
    ours, fast = (
        lists(kind(run, *given, config), ["b5 b9"])
        for kind, given in ((Translator, ()), (FastTranslator, (folder,)))
    )
    assert fast == ours
    assert len(fast[0][0].split()) > 1024


@pytest.mark.parametrize(
    "settings", [{"min_length": 7}, {"length_penalty": 1.2}, {"unknown": "forbid"}], ids=str
)
def test_a_search_by_which_ctranslate2_would_come_to_something_else_is_left_to_attlas(
    exported: Callable[..., tuple[Run, Path]],
    settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, folder = exported()
    config = DecodingConfig(num_beams=3, n_best=2, **settings)
    texts = ["b5 b9", "b1 b2 b3", "b7"]
    fast = FastTranslator(run, folder, config)
    monkeypatch.setattr(fast, "_begun", None)
    assert lists(fast, texts) == lists(Translator(run, config), texts)


def test_for_unknown_tokens_of_ctranslate2_stand_words_of_the_source(tmp_path: Path) -> None:
    run = leaning(run_of(tmp_path / "run", small(tie_source=True)), UNKNOWN, 6.0)
    export(run, "ctranslate2", tmp_path / "out")
    limits = {"max_len_a": 0.0, "max_len_b": 6}
    replaced = 0
    for settings in ({"method": "greedy"}, {"num_beams": 3, "n_best": 3}):
        config = DecodingConfig(unknown="replace", **limits, **settings)
        for one in FastTranslator(run, tmp_path / "out", config).stream(TEXTS):
            every = [one, *one.alternatives]
            assert len({each.text for each in every}) == len(every)
            for each in every:
                assert each.text == by_the_trace(each)
                replaced += "<unk>" in each.tokens
    assert replaced


def by_the_trace(one: Translation) -> str:
    """For "<unk>" the word with the greatest weight, the mean over heads and layers."""
    words, written = one.source_text.split(), [t for t in one.tokens if t != "</s>"]
    if not written:
        return ""
    trace = one.trace
    assert trace is not None
    cross_attention = [
        trace[layer].weights()[0] for layer in trace if trace.is_cross_attention(layer)
    ]
    most = torch.stack(cross_attention).mean((0, 1))[:, : len(words)].argmax(-1).tolist()
    return " ".join(
        words[place] if token == "<unk>" else token
        for token, place in zip(written, most, strict=False)
    )


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"architecture": "x86_64", "avx2": True}, "float32"),
        ({"architecture": "x86_64", "avx512_f": True, "avx512_vnni": False}, "float32"),
        ({}, "float32"),
        ({"architecture": "x86_64", "avx512_vnni": True}, "int8"),
        ({"architecture": "x86_64", "avx_vnni": True}, "int8"),
        ({"architecture": "aarch64"}, "int8"),
    ],
    ids=str,
)
def test_8_bits_are_computed_with_in_32_where_their_products_would_be_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: dict[str, Any], expected: str
) -> None:
    run = run_of(tmp_path / "run", small(tie_source=True))
    export(run, "ctranslate2", tmp_path / "int8", quantization="int8")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known, raising=False)
    engine = FastTranslator(run, tmp_path / "int8")._engine
    assert engine.compute_type.split("_")[0] == expected


def test_the_folder_has_to_be_an_export_of_this_checkpoint(
    exported: Callable[..., tuple[Run, Path]], tmp_path: Path
) -> None:
    run, folder = exported()
    with pytest.raises(AttlasError, match=r"got none; run: attlas export .*--out .*none$"):
        FastTranslator(run, tmp_path / "none")
    export(run, "safetensors", tmp_path / "weights")
    with pytest.raises(AttlasError, match=r"export to safetensors; name another folder$"):
        FastTranslator(run, tmp_path / "weights")
    other = run_of(tmp_path / "other", small(tie_source=True, norm_type="rms"))
    export(other, "ctranslate2", tmp_path / "others")
    with pytest.raises(AttlasError, match="one of other weights, of checkpoint 00000007; take it"):
        FastTranslator(run, tmp_path / "others")
    (folder / "attlas.json").write_text("{")
    with pytest.raises(AttlasError, match=r"a damaged attlas.json"):
        FastTranslator(run, folder)


def test_what_attlas_never_writes_is_left_to_its_own_search(
    exported: Callable[..., tuple[Run, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, folder = exported()
    config = DecodingConfig(num_beams=3, n_best=3)
    expected = list(Translator(run, config).stream(TEXTS))
    monkeypatch.setattr("attlas.inference.ctranslate2._is_unwritable", lambda one: True)
    token_mask, own = Translator.search, list[object]()
    monkeypatch.setattr(
        Translator,
        "search",
        lambda self, *requested: (own.extend(requested[0]), token_mask(self, *requested))[1],
    )
    found = list(FastTranslator(run, folder, config).stream(TEXTS))
    assert len(own) == sum(map(bool, TEXTS))
    assert [one.text for one in found] == [one.text for one in expected]


@pytest.mark.parametrize("name", ["model.bin", "config.json", "tokenizer.json"])
def test_an_export_with_a_flipped_bit_is_refused_with_the_name_of_the_file(
    exported: Callable[..., tuple[Run, Path]], name: str
) -> None:
    run, folder = exported()
    FastTranslator(run, folder)
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 16
    (folder / name).write_bytes(content)
    with pytest.raises(AttlasError, match=rf"other bytes in {name}; take it away and run: attlas"):
        FastTranslator(run, folder)

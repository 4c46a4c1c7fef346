"""`--to onnx` of recurrent models: onnxruntime is the referee."""

import tempfile
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import attlas
from attlas.decoding import DecodingConfig, decode
from attlas.errors import AttlasError
from attlas.export import export
from attlas.export.onnx.attention import GraphAttention
from attlas.export.onnx.builder import Graph
from attlas.layers import ScoredAttention
from attlas.models import LocalConfig, RecurrentConfig, SequenceToSequence
from attlas.models.rnn.decoder import PlainDecoder
from support.exportable import WORDS, logits_of, run_of, sentences
from support.onnx_runtime import Runtime


def small(**settings: Any) -> RecurrentConfig:
    """Widths that differ from each other; nothing random."""
    sizes = {"embed_dim": 6, "hidden_dim": 10, "encoder_hidden_dim": 7, "dropout": 0.0}
    return RecurrentConfig(**(sizes | settings))


LUONG: dict[str, Any] = {"decoder": "luong", "attention": "general"}
KINDS = {
    "bahdanau": small(),
    "bahdanau, lstm, two layers": small(cell="lstm", layers=2),
    "bahdanau, tanh": small(readout="tanh", readout_dim=9, attention_hidden_dim=5),
    "bahdanau, linear": small(readout="linear"),
    "bahdanau, linear output": small(readout="linear_output", cell="lstm"),
    "bahdanau, coverage": small(coverage=True, layers=2),
    "bahdanau, concat, one direction": small(attention="concat", bidirectional=False),
    "bahdanau, dot": small(attention="dot", hidden_dim=14, cell="lstm"),
    "bahdanau, local": small(attention="local", local=LocalConfig(radius=2)),
    "luong": small(**LUONG),
    "luong, linear": small(**LUONG, readout="linear", cell="lstm"),
    "luong, lstm, three layers": small(**LUONG, cell="lstm", layers=3, bidirectional=False),
    "luong, dot": small(decoder="luong", attention="dot", hidden_dim=7, bidirectional=False),
    "luong, coverage": small(decoder="luong", attention="additive", coverage=True, cell="lstm"),
    "luong, fed": small(**LUONG, input_feeding=True, layers=2),
    "luong, fed, coverage": small(
        decoder="luong", attention="concat", coverage=True, input_feeding=True
    ),
    "luong, local-m": small(
        decoder="luong",
        attention="local",
        local=LocalConfig(centre="monotonic", radius=1, score="concat"),
    ),
    "luong, local-p, fed": small(
        decoder="luong",
        attention="local",
        local=LocalConfig(radius=3, score="dot"),
        hidden_dim=14,
        input_feeding=True,
        cell="lstm",
    ),
    "none": small(attention="none"),
    "none, lstm, two layers": small(attention="none", cell="lstm", layers=2),
    "none, one direction": small(attention="none", bidirectional=False, layers=2),
    "tied": small(tie_output=True),
    "tied, as wide": small(attention="none", embed_dim=10, tie_output=True, tie_source=True),
}


@st.composite
def configs(draw: st.DrawFn) -> RecurrentConfig:
    """Any recurrent model of a few numbers."""
    width = st.integers(1, 9)
    attention = draw(st.sampled_from(["none", "additive", "dot", "general", "concat", "local"]))
    both = draw(st.booleans())
    settings: dict[str, Any] = {
        "cell": draw(st.sampled_from(["gru", "lstm"])),
        "layers": draw(st.integers(1, 3)),
        "embed_dim": draw(width),
        "hidden_dim": draw(width),
        "encoder_hidden_dim": draw(width),
        "bidirectional": both,
        "attention": attention,
        "tie_output": draw(st.booleans()),
        "tie_source": draw(st.booleans()),
        "dropout": 0.3,
    }
    score = attention
    if attention == "local":
        score = draw(st.sampled_from(["dot", "general", "concat"]))
        centre = draw(st.sampled_from(["monotonic", "predictive"]))
        settings["local"] = LocalConfig(centre=centre, radius=draw(st.integers(1, 4)), score=score)
    if score == "dot":
        settings["hidden_dim"] = settings["encoder_hidden_dim"] * (2 if both else 1)
    if score in ("additive", "concat"):
        settings["coverage"] = draw(st.booleans())
        settings["attention_hidden_dim"] = draw(width)
    if attention != "none":
        settings["decoder"] = draw(st.sampled_from(["bahdanau", "luong"]))
        if settings["decoder"] == "luong":
            settings["input_feeding"] = draw(st.booleans())
        else:
            settings["readout"] = draw(st.sampled_from(["maxout", "tanh"]))
            settings["readout_dim"] = draw(width)
    return RecurrentConfig(**settings)


def begun(rows: int, length: int, vocabulary: int) -> Tensor:
    """Random targets, each begun by BEGIN."""
    return torch.cat([torch.full((rows, 1), 2), torch.randint(4, vocabulary, (rows, length))], 1)


def exported(folder: Path, config: RecurrentConfig, **decoding: Any) -> tuple[Any, Runtime]:
    """The model of a run, and its graphs."""
    run = run_of(folder / "run", config, **decoding)
    export(run, "onnx", folder / "out")
    return run.model(), Runtime(folder / "out")


def sizes(model: SequenceToSequence[Any]) -> tuple[int, int]:
    """How many ids the source and the target have."""
    target = model.target_embedding.num_embeddings
    own: Any = model.source_embedding
    return target if own is None else own.num_embeddings, target


def check_steps(
    model: SequenceToSequence[Any], runtime: Runtime, lengths: tuple[int, ...], steps: int
) -> None:
    """Logits and weights of every step of every row are the model's."""
    vocabularies = sizes(model)
    source, token_mask = sentences(vocabularies[0], lengths)
    target = begun(len(lengths), steps, vocabularies[1])
    found, weights = runtime.read(target, runtime.start(source, token_mask))
    expected = logits_of(model, source, token_mask, target)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert (weights is None) == isinstance(model.decoder, PlainDecoder)
    if weights is not None:
        with attlas.observe(model) as trace:
            logits_of(model, source, token_mask, target)
        seen = trace["decoder.attention"].weights()[:, 0]
        torch.testing.assert_close(weights, seen, rtol=1e-4, atol=1e-5)


def check_greedy(
    model: SequenceToSequence[Any],
    runtime: Runtime,
    lengths: tuple[int, ...],
    config: DecodingConfig,
) -> None:
    """Whole greedy translations are the model's, in one batch and alone."""
    source, token_mask = sentences(sizes(model)[0], lengths)
    found = decode(model, source, token_mask, config)
    expected = [(list(best.tokens), best.finished) for (best,) in found]
    rows = [row[: length - 1].tolist() for row, length in zip(source, lengths, strict=True)]
    assert runtime.translator.search(rows) == expected
    assert [runtime.translator.search([row])[0] for row in rows] == expected


@pytest.mark.parametrize("kind", KINDS)
def test_every_step_and_every_translation_is_ours(tmp_path: Path, kind: str) -> None:
    limits = {"max_len_a": 1.5, "max_len_b": 3}
    model, runtime = exported(tmp_path, KINDS[kind], method="greedy", **limits)
    for lengths in [(7, 4, 1), (1,), (3, 23, 2, 5)]:
        check_steps(model, runtime, lengths, steps=12)
        check_greedy(model, runtime, lengths, DecodingConfig(method="greedy", **limits))


@given(
    config=configs(),
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=5).map(tuple),
    steps=st.integers(1, 8),
)
def test_any_recurrent_model_is_ours(
    config: RecurrentConfig, lengths: tuple[int, ...], steps: int
) -> None:
    limits = {"max_len_a": 1.0, "max_len_b": 8}
    with tempfile.TemporaryDirectory() as folder:
        model, runtime = exported(Path(folder), config, method="greedy", **limits)
        check_steps(model, runtime, lengths, steps)
        check_greedy(model, runtime, lengths, DecodingConfig(method="greedy", **limits))


@pytest.mark.parametrize("kind", ["bahdanau, lstm, two layers", "luong, local-m", "none"])
def test_what_stands_in_the_padding_changes_nothing(tmp_path: Path, kind: str) -> None:
    model, runtime = exported(tmp_path, KINDS[kind])
    source, token_mask = sentences(sizes(model)[0], (6, 2))
    target = begun(2, 3, sizes(model)[1])
    junk = source.masked_fill(~token_mask, 999)
    clean, soiled = (
        runtime.read(target, runtime.start(ids, token_mask))[0] for ids in (source, junk)
    )
    assert torch.equal(clean, soiled)


def test_more_padding_changes_nothing(tmp_path: Path) -> None:
    model, runtime = exported(tmp_path, KINDS["bahdanau, coverage"])
    source, token_mask = sentences(sizes(model)[0], (6, 2))
    target = begun(2, 5, sizes(model)[1])
    wider = torch.nn.functional.pad(source, (0, 9)), torch.nn.functional.pad(token_mask, (0, 9))
    narrow, narrow_weights = runtime.read(target, runtime.start(source, token_mask))
    wide, wide_weights = runtime.read(target, runtime.start(*wider))
    torch.testing.assert_close(wide, narrow, rtol=1e-5, atol=1e-6)
    assert narrow_weights is not None
    assert wide_weights is not None
    torch.testing.assert_close(wide_weights[..., :6], narrow_weights, rtol=1e-5, atol=1e-6)
    assert not wide_weights[..., 6:].any()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_can_be_chosen_again_after_any_step(tmp_path: Path, kind: str) -> None:
    model, runtime = exported(tmp_path, KINDS[kind])
    source, token_mask = sentences(sizes(model)[0], (5, 3, 8))
    target = begun(3, 6, sizes(model)[1])
    state = runtime.start(source, token_mask)
    for tokens in target.T[:4]:
        _, state = runtime.translator.step(tokens.numpy(), state)
    rows = [2, 2, 0]
    chosen = {name: value[rows] for name, value in state.items()}
    found, _ = runtime.read(target[rows, 4:], chosen)
    expected = logits_of(model, source, token_mask, target)[rows, 4:]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_behind_the_end_of_the_source_a_local_window_reads_zeros(tmp_path: Path) -> None:
    model, runtime = exported(tmp_path, KINDS["luong, local-m"])
    source, token_mask = sentences(sizes(model)[0], (2, 5))
    _, weights = runtime.read(begun(2, 5, 20), runtime.start(source, token_mask))
    assert weights is not None
    seen = weights > 0
    for row, length in enumerate((2, 5)):
        for step in range(6):
            window = [s for s in range(length) if abs(s - step) <= 1]
            assert seen[row, step].nonzero().flatten().tolist() == window


def test_a_predicted_place_at_either_end_is_ours(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", KINDS["bahdanau, local"])
    store = run.store
    checkpoint = store.read("00000007")
    checkpoint.model["decoder.attention.position_proj.weight"].mul_(1e4)
    store.write("00000008", checkpoint)
    export(run, "onnx", tmp_path / "out", checkpoint="00000008")
    check_steps(run.model("00000008"), Runtime(tmp_path / "out"), (9, 4, 1), steps=9)


def test_a_row_without_a_token_reads_as_ours_does(tmp_path: Path) -> None:
    model, runtime = exported(tmp_path, KINDS["bahdanau, lstm, two layers"])
    source, token_mask = sentences(sizes(model)[0], (4, 3))
    token_mask[1] = False
    target = begun(2, 3, sizes(model)[1])
    found, _ = runtime.read(target, runtime.start(source, token_mask))
    expected = logits_of(model, source, token_mask, target)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def shapes(folder: Path, graph: str) -> dict[str, list[int | str]]:
    session = onnxruntime.InferenceSession(folder / graph)
    return {one.name: one.shape for one in (*session.get_inputs(), *session.get_outputs())}


def test_the_batch_and_the_slots_are_free(tmp_path: Path) -> None:
    export(run_of(tmp_path / "run", small(coverage=True, layers=2)), "onnx", tmp_path / "out")
    assert shapes(tmp_path / "out", "encoder.onnx") == {
        "source": ["batch", "keys"],
        "token_mask": ["batch", "keys"],
        "source_keys": ["batch", "keys", 10],
        "source_values": ["batch", "keys", 14],
        "past_hidden": ["batch", 2, 10],
        "past_coverage": ["batch", "keys"],
    }
    assert shapes(tmp_path / "out", "decoder.onnx") == {
        "tokens": ["batch"],
        "token_mask": ["batch", "keys"],
        "source_keys": ["batch", "keys", 10],
        "source_values": ["batch", "keys", 14],
        "past_hidden": ["batch", 2, 10],
        "past_coverage": ["batch", "keys"],
        "logits": ["batch", len(WORDS.target)],
        "hidden": ["batch", 2, 10],
        "coverage": ["batch", "keys"],
        "weights": ["batch", "keys"],
    }


def test_a_model_that_cannot_look_asks_for_its_state_alone(tmp_path: Path) -> None:
    export(run_of(tmp_path / "run", KINDS["none"]), "onnx", tmp_path / "out")
    requested = {"tokens", "past_hidden"}
    assert set(shapes(tmp_path / "out", "decoder.onnx")) == {*requested, "logits", "hidden"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_remarks_name_every_input_and_output(tmp_path: Path, kind: str) -> None:
    run = run_of(tmp_path / "run", KINDS[kind])
    remarks = export(run, "onnx", tmp_path / "out").remarks
    for graph in ("encoder.onnx", "decoder.onnx"):
        (remark,) = (one for one in remarks if one.startswith(graph))
        for name, shape in shapes(tmp_path / "out", graph).items():
            sizes = f"{shape[0]}," if len(shape) == 1 else ", ".join(map(str, shape))
            assert f"{name} ({sizes})" in remark


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", KINDS["luong, fed, coverage"])
    for name in ("one", "two"):
        export(run, "onnx", tmp_path / name)
    for file in ("encoder.onnx", "decoder.onnx"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_an_attention_that_is_not_known_is_refused_by_its_name() -> None:
    class Other(ScoredAttention):
        project_kv = score = None  # type: ignore[assignment]

    Other.__abstractmethods__ = frozenset()
    attention = GraphAttention(Graph("encoder"), Other())
    with pytest.raises(AttlasError, match=r"additive, dot, .* for ONNX; got Other; .*safetensors"):
        attention.keys("source")

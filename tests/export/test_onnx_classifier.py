"""`--to onnx` of a classifier: onnxruntime is the referee."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attlas.errors import AttlasError
from attlas.export import export
from attlas.runs import Run
from support.exportable import classifier_run, sentences, small_classifier

POOLINGS = ["mean", "max", "first", "attentive"]


class Runtime:
    """The graph of an exported folder."""

    def __init__(self, folder: Path) -> None:
        self.session = onnxruntime.InferenceSession(folder / "classifier.onnx")

    def read(self, source: Tensor, token_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and probabilities."""
        given_ = {"source": source.numpy(), "token_mask": token_mask.numpy()}
        logits, probabilities = self.session.run(["logits", "probabilities"], given_)
        return torch.from_numpy(np.array(logits)), torch.from_numpy(np.array(probabilities))


def check(run: Run, runtime: Runtime, source: Tensor, token_mask: Tensor) -> None:
    """That the graph says what our model says."""
    logits, probabilities = runtime.read(source, token_mask)
    with torch.no_grad():
        expected = run.classifier()(source, token_mask)
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(probabilities, expected.softmax(-1), rtol=1e-4, atol=1e-4)


@st.composite
def settings(draw: st.DrawFn) -> dict[str, Any]:
    """Those of any classifier of a few numbers."""
    layers, heads = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 4]))
    positions = draw(st.sampled_from(["sinusoidal", "learned", "rotary", "none"]))
    pattern = st.sampled_from(
        ["everywhere", "window(0)", "window(2)", "window(16)", "either(window(3), landmarks(0))",
         "either(window(1), landmarks(5, 70))", "both(causal, window(4))", "causal", "strided(3)",
         "scattered(0.2, 7)", "landmarks(1)"]
    )  # fmt: skip
    count = draw(st.sampled_from([1, layers]))
    chosen: dict[str, Any] = {
        "layers": layers,
        "num_heads": heads,
        "num_kv_heads": draw(st.sampled_from([None, 1])),
        "qk_norm": draw(st.booleans()),
        "patterns": tuple(draw(pattern) for _ in range(count)),
        "pooling": draw(st.sampled_from(POOLINGS)),
        "positions": positions,
        "norm_type": draw(st.sampled_from(["layer", "rms", "none"])),
        "residual": draw(st.booleans()),
        "bias": draw(st.sampled_from([True, False, ("q", "v", "out"), ("k",)])),
    }
    if chosen["norm_type"] != "none":
        chosen["norm"] = draw(st.sampled_from(["pre", "post"]))
    if draw(st.booleans()):
        chosen["ffn_dim"] = 0
    else:
        chosen["activation"] = draw(st.sampled_from(["relu", "gelu", "swiglu"]))
    if positions == "learned":
        chosen["max_positions"] = 120
    return chosen


@given(chosen=settings(), lengths=st.lists(st.integers(1, 120), min_size=1, max_size=4))
def test_any_classifier_says_the_same_of_texts_of_any_lengths(
    chosen: dict[str, Any], lengths: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = classifier_run(folder / "run", small_classifier(**chosen))
        export(run, "onnx", folder / "out")
        runtime = Runtime(folder / "out")
        source, token_mask = sentences(21, tuple(lengths))
        check(run, runtime, source, token_mask)
        check(
            run, runtime, source[:1, : lengths[0]], token_mask[:1, : lengths[0]]
        )  # without padding


@pytest.mark.parametrize("pooling", POOLINGS)
def test_padding_may_stand_anywhere_and_hold_anything(tmp_path: Path, pooling: str) -> None:
    config = small_classifier(pooling=pooling, patterns=("either(window(2), landmarks(0))",))
    run = classifier_run(tmp_path / "run", config)
    export(run, "onnx", tmp_path / "out")
    runtime = Runtime(tmp_path / "out")
    torch.manual_seed(1)
    source = torch.randint(4, 21, (3, 60))
    token_mask = torch.rand(3, 60) < 0.6
    token_mask[2] = False  # a text without a token pools to zeros
    check(run, runtime, source, token_mask)
    junk = source.masked_fill(~token_mask, 10**9)
    assert torch.equal(runtime.read(source, token_mask)[0], runtime.read(junk, token_mask)[0])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_long_text_beside_a_short_one_is_read_whole(tmp_path: Path, pooling: str) -> None:
    config = small_classifier(pooling=pooling, patterns=("window(16)",), layers=1)
    run = classifier_run(tmp_path / "run", config)
    export(run, "onnx", tmp_path / "out")
    source, token_mask = sentences(21, (3700, 5, 260))
    check(run, Runtime(tmp_path / "out"), source, token_mask)


def test_batch_and_slots_are_free_and_the_labels_are_as_many_as_there_are(tmp_path: Path) -> None:
    run = classifier_run(tmp_path / "run", small_classifier(), labels=tuple("abcde"))
    exported = export(run, "onnx", tmp_path / "out")
    session = Runtime(tmp_path / "out").session
    assert {one.name: one.shape for one in session.get_inputs()} == {
        "source": ["batch", "keys"],
        "token_mask": ["batch", "keys"],
    }
    assert [one.shape for one in session.get_outputs()] == [["batch", 5], ["batch", 5]]
    assert any("logits (batch, 5) float32" in remark for remark in exported.remarks)


def test_the_limit_of_learned_positions_is_in_the_file_and_is_reported(tmp_path: Path) -> None:
    config = small_classifier(positions="learned", max_positions=30)
    exported = export(classifier_run(tmp_path / "run", config), "onnx", tmp_path / "out")
    runtime = Runtime(tmp_path / "out")
    assert runtime.session.get_modelmeta().custom_metadata_map["longest"] == "30"
    assert any("reads at most 30 tokens" in remark for remark in exported.remarks)
    source, token_mask = sentences(21, (31,))
    with pytest.raises(Exception, match=r"out of data bounds|indices element out"):
        runtime.read(source, token_mask)


def test_without_learned_positions_there_is_no_limit_to_tell(tmp_path: Path) -> None:
    exported = export(
        classifier_run(tmp_path / "run", small_classifier()), "onnx", tmp_path / "out"
    )
    assert not Runtime(tmp_path / "out").session.get_modelmeta().custom_metadata_map
    assert not any("at most" in remark for remark in exported.remarks)


def test_without_onnx_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = classifier_run(tmp_path / "run", small_classifier())
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(AttlasError, match=r"pip install 'attlas\[onnx\]'"):
        export(run, "onnx", tmp_path / "out")
    assert not (tmp_path / "out").exists()

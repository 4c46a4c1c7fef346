"""`--to onnx`: onnxruntime is the referee."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor

from attlas.errors import AttlasError
from attlas.export import export
from attlas.export.onnx import builder as graph
from support.exportable import (
    MARIAN,
    NORMED,
    OTHERS,
    PATTERNED,
    logits_of,
    run_of,
    sentences,
    small,
)

KINDS = {**MARIAN, **OTHERS, **NORMED, **PATTERNED}


class Runtime:
    """The two graphs, run as a decoder runs them: a token at a time, the past handed on."""

    def __init__(self, folder: Path) -> None:
        self.encoder = onnxruntime.InferenceSession(folder / "encoder.onnx")
        self.decoder = onnxruntime.InferenceSession(folder / "decoder.onnx")
        self.kept = [output.name for output in self.decoder.get_outputs()][1:]

    def logits(self, source: Tensor, token_mask: Tensor, target: Tensor) -> Tensor:
        given = {"source": source.numpy(), "token_mask": token_mask.numpy()}
        names = [output.name for output in self.encoder.get_outputs()]
        read = dict(zip(names, self.encoder.run(None, given), strict=True))
        past = [read[f"source_{name}"][:, :, :0] for name in self.kept]
        steps = []
        for tokens in target.T:
            before = {f"past_{name}": one for name, one in zip(self.kept, past, strict=True)}
            logits, *past = self.decoder.run(
                None, {"tokens": tokens.numpy(), "token_mask": token_mask.numpy(), **read, **before}
            )
            steps.append(torch.from_numpy(np.array(logits)))
        return torch.stack(steps, dim=1)


@pytest.mark.parametrize("kind", KINDS)
def test_every_step_has_our_logits(tmp_path: Path, kind: str) -> None:
    run = run_of(tmp_path / "run", KINDS[kind])
    export(run, "onnx", tmp_path / "out")
    runtime = Runtime(tmp_path / "out")
    sizes = len(run.vocabularies().source), len(run.vocabularies().target)
    for lengths in [(7, 4, 1), (1,), (40, 40)]:
        source, token_mask = sentences(sizes[0], lengths)
        target = torch.cat(
            [torch.full((len(lengths), 1), 2), torch.randint(4, sizes[1], (len(lengths), 12))], 1
        )
        found = runtime.logits(source, token_mask, target)
        expected = logits_of(run.model(), source, token_mask, target)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_what_stands_in_the_padding_changes_nothing(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", small())
    export(run, "onnx", tmp_path / "out")
    runtime = Runtime(tmp_path / "out")
    source, token_mask = sentences(len(run.vocabularies().source), (6, 2))
    target = torch.randint(4, 20, (2, 3))
    junk = source.masked_fill(~token_mask, 999)
    assert torch.equal(
        runtime.logits(source, token_mask, target), runtime.logits(junk, token_mask, target)
    )


def test_the_batch_the_slots_and_the_steps_are_free(tmp_path: Path) -> None:
    export(run_of(tmp_path / "run", small()), "onnx", tmp_path / "out")
    runtime = Runtime(tmp_path / "out")
    shapes = {one.name: one.shape for one in runtime.decoder.get_inputs()}
    assert shapes["tokens"] == ["batch"]
    assert shapes["source_keys.0"] == ["batch", 2, "keys", 8]
    assert shapes["past_values.2"] == ["batch", 2, "steps", 8]


def test_a_position_that_was_never_learned_is_an_error(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", small(positions="learned", max_positions=5))
    export(run, "onnx", tmp_path / "out")
    source, token_mask = sentences(len(run.vocabularies().source), (6,))
    given = {"source": source.numpy(), "token_mask": token_mask.numpy()}
    with pytest.raises(Exception, match=r"out of data bounds|indices element out"):
        Runtime(tmp_path / "out").encoder.run(None, given)


def test_without_onnx_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path / "run", small())
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(AttlasError, match=r"pip install 'attlas\[onnx\]'"):
        export(run, "onnx", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_more_than_a_file_can_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path / "run", small())
    monkeypatch.setattr(graph, "_MOST", 1000)
    with pytest.raises(AttlasError, match=r"a model of at most 1,000 bytes for encoder.onnx"):
        export(run, "onnx", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    run: Any = run_of(tmp_path / "run", small())
    for name in ("one", "two"):
        export(run, "onnx", tmp_path / name)
    for file in ("encoder.onnx", "decoder.onnx"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()

"""`--to safetensors`."""

import json
from pathlib import Path

import pytest
import safetensors.torch
import torch

from attlas.data import Vocabularies
from attlas.errors import AttlasError
from attlas.export import export
from attlas.models import build
from attlas.runs import Run
from support.exportable import MARIAN, NORMED, OTHERS, RECURRENT, logits_of, run_of, sentences

KINDS = {**MARIAN, **OTHERS, **NORMED, "recurrent": RECURRENT}


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_dict_makes_the_same_model(tmp_path: Path, kind: str) -> None:
    run = run_of(tmp_path / "run", KINDS[kind])
    export(run, "safetensors", tmp_path / "out")
    vocabularies = Vocabularies.load(tmp_path / "out")
    sizes = len(vocabularies.source), len(vocabularies.target)
    model = build(KINDS[kind], *sizes).eval()
    model.load_state_dict(safetensors.torch.load_file(tmp_path / "out" / "model.safetensors"))
    source, token_mask = sentences(sizes[0], (5, 3, 1))
    target = torch.randint(4, sizes[1], (3, 4))
    found = logits_of(model, source, token_mask, target)
    assert torch.equal(found, logits_of(run.model(), source, token_mask, target))


def test_the_recipe_and_the_vocabularies_are_those_of_the_run(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", MARIAN["post"])
    exported = export(run, "safetensors", tmp_path / "out")
    assert Run(tmp_path / "out").config == run.config
    assert set(exported.files) == {path.name for path in (tmp_path / "out").iterdir()}
    for name in ("source.json", "target.json"):
        assert (tmp_path / "out" / name).read_bytes() == (run.path / name).read_bytes()


def test_the_folder_says_of_which_checkpoint_it_is(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", MARIAN["post"])
    exported = export(run.path, "safetensors", tmp_path / "out")
    origin = json.loads((tmp_path / "out" / "attlas.json").read_bytes())
    assert origin["checkpoint"] == run.store.named("best")
    assert origin["provenance"] == run.provenance()
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert all(remark in text for remark in exported.remarks)


def test_a_checkpoint_that_is_not_there_is_the_callers_mistake(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", MARIAN["post"])
    for which in ("last", "00000008"):
        with pytest.raises(AttlasError, match=f"a checkpoint '{which}'"):
            export(run, "safetensors", tmp_path / "out", checkpoint=which)
    assert not (tmp_path / "out").exists()

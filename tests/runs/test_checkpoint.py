"""A checkpoint is read as it was written, or refused by name."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import AttlasError
from attlas.runs import Checkpoint, read_checkpoint, write_checkpoint

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool]


def example() -> Checkpoint:
    torch.manual_seed(0)
    model = {"weight": torch.randn(4, 3), "empty": torch.empty(0, 2), "scalar": torch.tensor(2.0)}
    training = {"weight/step": torch.tensor(7.0)}
    return Checkpoint(model, training, {"update": 7, "best": [0.1, 1e-300], "text": "grün"})


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_kind_of_number_comes_back_bit_by_bit(tmp_path: Path, dtype: torch.dtype) -> None:
    tensor = (torch.randn(5, 3) * 3).to(dtype)
    write_checkpoint(tmp_path / "c", Checkpoint({"t": tensor, "view": tensor.t()}))
    back = read_checkpoint(tmp_path / "c").model
    assert back["t"].dtype == dtype
    assert torch.equal(back["t"], tensor)
    assert torch.equal(back["view"], tensor.t())


def test_facts_and_training_state_come_back(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", example())
    back = read_checkpoint(tmp_path / "c")
    assert back.facts == example().facts
    assert back.training["weight/step"].item() == 7.0
    assert set(back.model) == {"weight", "empty", "scalar"}


@given(st.floats(allow_nan=False))
def test_a_fact_keeps_every_bit_of_a_float(
    tmp_path_factory: pytest.TempPathFactory, x: float
) -> None:
    path = tmp_path_factory.mktemp("facts") / "c"
    write_checkpoint(path, Checkpoint({}, {}, {"x": x}))
    assert read_checkpoint(path).facts["x"] == x


def test_tied_weights_are_written_and_read(tmp_path: Path) -> None:
    shared = torch.randn(3, 2)
    write_checkpoint(tmp_path / "c", Checkpoint({"in": shared, "out": shared}))
    back = read_checkpoint(tmp_path / "c").model
    assert torch.equal(back["in"], shared)
    assert torch.equal(back["out"], shared)


def test_the_same_checkpoint_is_the_same_file(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "a", example())
    write_checkpoint(tmp_path / "b", example())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_cut_anywhere_is_refused_by_name(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", example())
    whole = (tmp_path / "c").read_bytes()
    for length in range(0, len(whole), 13):
        (tmp_path / "c").write_bytes(whole[:length])
        with pytest.raises(AttlasError, match=rf"a whole checkpoint at {tmp_path / 'c'}"):
            read_checkpoint(tmp_path / "c")


def test_a_file_with_one_flipped_bit_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", example())
    whole = (tmp_path / "c").read_bytes()
    padding = whole[8 : 8 + int.from_bytes(whole[:8], "little")]
    spaces = range(8 + len(padding.rstrip()), 8 + len(padding))  # these carry nothing
    for place in range(0, len(whole), 3):
        if place in spaces:
            continue
        flipped = bytearray(whole)
        flipped[place] ^= 4
        (tmp_path / "c").write_bytes(flipped)
        with pytest.raises(AttlasError, match="a whole checkpoint at"):
            read_checkpoint(tmp_path / "c")


def test_a_file_of_something_else_and_none_at_all_are_refused(tmp_path: Path) -> None:
    (tmp_path / "c").write_text(json.dumps({"model": 1}))
    with pytest.raises(AttlasError, match="a damaged file"):
        read_checkpoint(tmp_path / "c")
    with pytest.raises(AttlasError, match="No such file"):
        read_checkpoint(tmp_path / "nowhere")


def test_a_pickle_is_refused_and_not_executed(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (tmp_path / "executed",)  # type: ignore[return-value]

    torch.save(Trap(), tmp_path / "c")
    with pytest.raises(AttlasError, match="a whole checkpoint"):
        read_checkpoint(tmp_path / "c")
    assert not (tmp_path / "executed").exists()


def test_the_error_for_a_damaged_checkpoint_names_the_newest_one_that_is_whole(
    tmp_path: Path,
) -> None:
    """Neither the damaged one, whatever points at it, nor another that is damaged too."""
    names = ["00000002", "00000004", "00000006", "00000008", "averaged"]
    paths = {name: tmp_path / "checkpoints" / f"{name}.safetensors" for name in names}
    (tmp_path / "checkpoints").mkdir()
    for path in paths.values():
        write_checkpoint(path, example())

    def damaged(name: str) -> str:
        content = bytearray(paths[name].read_bytes())
        content[-3] ^= 1  # of a weight
        paths[name].write_bytes(content)
        with pytest.raises(AttlasError) as caught:
            read_checkpoint(paths["00000008"])
        return caught.value.hint

    assert "--checkpoint 00000006; " in damaged("00000008")
    assert f"write 00000004 into {tmp_path / 'last'}" in damaged("00000006")
    assert "--checkpoint 00000002; " in damaged("00000004")
    assert damaged("00000002") == "use averaged, which is whole: --checkpoint averaged"
    assert "holds no other checkpoint that is whole" in damaged("averaged")

"""A run folder is read back, and what is missing from it is named."""

from pathlib import Path

import pytest
import torch

from attlas._files import locked
from attlas._hardware import device_named
from attlas.config import write_toml
from attlas.data import Pair, VocabularyConfig, build_vocabularies
from attlas.errors import AttlasError
from attlas.jobs.inputs import run_at
from attlas.models import RecurrentConfig, build
from attlas.runs import BEST, LAST, Checkpoint, CheckpointStore, Run

MODEL = RecurrentConfig(embed_dim=4, hidden_dim=4, encoder_hidden_dim=4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A whole run, as a training would leave it."""
    vocabularies = build_vocabularies(
        VocabularyConfig(kind="words", size=20, shared=False), [Pair("a b c", "x y")]
    )
    vocabularies.save(tmp_path)
    (tmp_path / "config.toml").write_text(write_toml({"seed": 1, "model": MODEL.model_dump()}))
    (tmp_path / "provenance.json").write_text('{"seed": 1}')
    (tmp_path / "metrics.jsonl").write_text('{"event": "started"}\n{"event": "tra')
    torch.manual_seed(0)
    model = build(MODEL, len(vocabularies.source), len(vocabularies.target))
    store = CheckpointStore(tmp_path)
    store.write("00000005", Checkpoint(model.state_dict()))
    store.point(BEST, "00000005")
    store.point(LAST, "00000005")
    return tmp_path


def test_a_run_gives_its_model_its_vocabularies_and_its_tables(folder: Path) -> None:
    run = Run(folder)
    assert run.table("model")["hidden_dim"] == 4
    assert len(run.vocabularies().target) == 6
    assert run.checkpoints() == ["00000005"]
    assert run.provenance() == {"seed": 1}
    model = run.model()
    assert not model.training
    saved = run.store.read("last").model
    assert all(torch.equal(tensor, saved[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("which", [BEST, LAST])
def test_checkpoints_that_are_gone_are_reported_by_who_uses_a_run(folder: Path, which: str) -> None:
    (folder / "checkpoints" / "00000005.safetensors").unlink()
    for ask in (lambda: run_at(folder, which), lambda: Run(folder).store.read(which)):
        with pytest.raises(AttlasError, match=r"put the checkpoints back, .*: none is left$"):
            ask()


def test_a_line_cut_short_by_a_kill_is_no_event(folder: Path) -> None:
    assert Run(folder).events() == [{"event": "started"}]


@pytest.mark.parametrize(
    ("content", "events"),
    [
        (b"", 0),
        (b'{"event": "started"}', 0),
        (b'{"event": "started"}\n{"event": "trained"}', 1),
        (b'{"event": "started"}\n5', 1),
        (b'{"event": "started"}\n{"event": "trained"}\n', 2),
    ],
)
def test_a_line_counts_once_it_has_an_end(folder: Path, content: bytes, events: int) -> None:
    (folder / "metrics.jsonl").write_bytes(content)
    expected = [{"event": "started"}, {"event": "trained"}]
    assert Run(folder).events() == expected[:events]


@pytest.mark.parametrize(
    "content",
    [
        *(b"5\n", b"null\n", b'[{"event": 1}]\n', b'{"event":1}\n{x}\n', b'{"event":1}\n\n'),
        b"\xff\n",
        pytest.param(b"[" * 100_000 + b"\n", id="nested"),
    ],
)
def test_metrics_that_are_not_an_object_per_line_are_an_error(folder: Path, content: bytes) -> None:
    (folder / "metrics.jsonl").write_bytes(content)
    with pytest.raises(AttlasError, match=r"one JSON object per line in .*metrics\.jsonl; got "):
        Run(folder).events()


@pytest.mark.parametrize(
    "content",
    [
        *(b"[]", b"5", b'{"data": 3}', b'{"data": []}', b"{", b"\xff"),
        pytest.param(b"[" * 100_000, id="nested"),
    ],
)
def test_a_provenance_that_holds_something_else_is_an_error(folder: Path, content: bytes) -> None:
    (folder / "provenance.json").write_bytes(content)
    with pytest.raises(AttlasError, match=r"a readable provenance\.json in .*; restore that file"):
        Run(folder).provenance()


def test_a_byte_that_is_not_utf_8_is_reported_with_its_file_and_line(folder: Path) -> None:
    """In each of the text files of a run, as an editor counts."""
    whole = {name: (folder / name).read_bytes() for name in ("config.toml", "provenance.json")}
    whole |= {"metrics.jsonl": b'{"event": "a"}\n{"event": "b"}\n', "last": b"00000001\n"}
    for name, content in whole.items():
        place = content.rindex(b"\n", 0, -1) + 2 if b"\n" in content[:-1] else 1
        number = content[:place].count(b"\n") + 1
        (folder / name).write_bytes(content[:place] + b"\xff" + content[place + 1 :])
        within = place - (content[:place].rfind(b"\n") + 1) + 1
        reported = f"{name}.*byte 0xff, which is not UTF-8, at byte {within} of line {number};"
        with pytest.raises(AttlasError, match=reported) as caught:
            _read_all(Run(folder))
        assert "codec" not in str(caught.value)
        (folder / name).write_bytes(content)


def _read_all(run: Run) -> None:
    _ = run.config, run.provenance(), run.events(), run.store.named("last")


def test_a_damaged_event_is_reported_with_its_line(folder: Path) -> None:
    (folder / "metrics.jsonl").write_text('{"event": "a"}\n[]\n', encoding="utf-8")
    with pytest.raises(AttlasError, match=r"metrics\.jsonl; got something else in line 2;"):
        Run(folder).events()


def test_a_run_without_metrics_has_no_events(folder: Path) -> None:
    (folder / "metrics.jsonl").unlink()
    assert Run(folder).events() == []


def test_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AttlasError, match=r"got no folder at .*nowhere; check the path"):
        Run(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(AttlasError, match=r"got a file at"):
        Run(tmp_path / "file")


def test_a_run_of_a_similar_name_is_named(tmp_path: Path) -> None:
    for name in ("my300", "my3000"):
        (tmp_path / name).mkdir()
    (tmp_path / "my300" / "config.toml").touch()  # the other one is no run
    expected = rf"; did you mean {tmp_path / 'my300'}\? Otherwise check the path"
    with pytest.raises(AttlasError, match=expected):
        Run(tmp_path / "my30")
    with pytest.raises(AttlasError, match="; check the path"):
        Run(tmp_path / "other")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("config.toml", r"no config\.toml in it"),
        ("source.json", r"tokenizer\.\*, or source\.\*"),
        ("best", "a checkpoint 'best' of"),
        ("checkpoints/00000005.safetensors", "00000005"),
        ("provenance.json", r"provenance\.json"),
    ],
)
def test_a_missing_file_is_named(folder: Path, file: str, message: str) -> None:
    (folder / file).unlink()
    with pytest.raises(AttlasError, match=message):
        _ = Run(folder).model(), Run(folder).provenance()


def test_a_missing_table_is_named(folder: Path) -> None:
    with pytest.raises(AttlasError, match=r"a table \[decoding\].*\['model'\]"):
        Run(folder).table("decoding")


def test_a_checkpoint_of_another_model_is_an_error(folder: Path) -> None:
    other = MODEL.model_copy(update={"hidden_dim": 5})
    (folder / "config.toml").write_text(write_toml({"model": other.model_dump()}))
    with pytest.raises(AttlasError, match="a checkpoint that fits the recipe and vocabularies"):
        Run(folder).model()


def test_a_device_that_is_not_here_is_an_error(folder: Path) -> None:
    with pytest.raises(AttlasError, match=r"got 'abacus' .*choose 'auto', which takes what"):
        Run(folder).model(device="abacus")


def test_auto_is_a_graphics_card_where_there_is_one() -> None:
    assert device_named("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_a_lock_is_held_by_one_and_let_go_of_at_the_end(tmp_path: Path) -> None:
    with (
        locked(tmp_path),
        pytest.raises(AttlasError, match="for this training alone"),
        locked(tmp_path),
    ):
        pass
    with locked(tmp_path):
        assert (tmp_path / ".lock").is_file()

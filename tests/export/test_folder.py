"""Folders that are whole or absent."""

import json
from pathlib import Path

import pytest

from attlas._files import new_folder
from attlas.decoding import DecodingConfig
from attlas.errors import AttlasError
from attlas.export import export
from attlas.runs.loaded import unsupported
from support.exportable import RECURRENT, run_of, small


def test_what_is_written_stands_at_its_place_and_nothing_is_beside_it(tmp_path: Path) -> None:
    with new_folder(tmp_path / "a" / "b") as folder:
        (folder / "one").write_text("1")
        assert not (tmp_path / "a" / "b").exists()
    assert (tmp_path / "a" / "b" / "one").read_text() == "1"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


@pytest.mark.parametrize("mistake", [RuntimeError, KeyboardInterrupt])
def test_nothing_is_left_of_a_folder_whose_writing_failed(tmp_path: Path, mistake: type) -> None:
    def fail(path: Path) -> None:
        with new_folder(path) as folder:
            (folder / "one").write_text("1")
            raise mistake

    for path in (tmp_path / "a", tmp_path / "b" / "c" / "d"):
        with pytest.raises(mistake):
            fail(path)
        assert list(tmp_path.iterdir()) == []
    (tmp_path / "b").mkdir()  # is not ours to remove
    with pytest.raises(mistake):
        fail(tmp_path / "b" / "c" / "d")
    assert list(tmp_path.rglob("*")) == [tmp_path / "b"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with new_folder(tmp_path / "a") as folder:
        (folder / "one").write_text("1")
    assert (tmp_path / "a" / "one").is_file()


def test_the_current_folder_is_filled_where_it_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    with new_folder(Path()) as folder:
        (folder / "one").write_text("1")
    assert (tmp_path / "a" / "one").is_file()


def test_a_folder_that_holds_something_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    with pytest.raises(AttlasError, match=r"empty folder at .*; got one that holds one"):
        new_folder(tmp_path).__enter__()
    assert (tmp_path / "one").read_text() == "1"


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    with pytest.raises(AttlasError, match="got a file"):
        new_folder(tmp_path / "one").__enter__()


def test_a_place_that_may_not_be_written_is_the_callers_mistake(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    with pytest.raises(AttlasError, match="expected to write"):
        new_folder(tmp_path / "one" / "a").__enter__()


def test_an_export_that_cannot_be_leaves_no_folder(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", RECURRENT)
    for format_ in ("huggingface", "ctranslate2"):
        with pytest.raises(AttlasError, match=r"of kind \"transformer\" for .*; got 'recurrent'"):
            export(run, format_, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("format_", "quantization", "message"),
    [
        ("marian", "float32", "--to huggingface"),
        ("onnxx", "float32", "did you mean 'onnx'"),
        ("marian", "float32", "one of the formats safetensors, huggingface, ctranslate2, onnx"),
        ("ctranslate2", "int4", "a quantization of float32 or int8"),
        ("onnx", "int8", "quantization = float32 for onnx"),
    ],
)
def test_what_is_asked_for_has_to_exist(
    tmp_path: Path, format_: str, quantization: str, message: str
) -> None:
    run = run_of(tmp_path / "run", small())
    with pytest.raises(AttlasError, match=message):
        export(run, format_, tmp_path / "out", quantization=quantization)


@pytest.mark.parametrize("format_", ["huggingface", "ctranslate2"])
def test_these_formats_have_no_place_for_norms_of_queries_and_keys(
    tmp_path: Path, format_: str
) -> None:
    run = run_of(tmp_path / "run", small(norm="post", qk_norm=True))
    said = r"queries and keys without a norm for .*; got qk_norm = true; use --to onnx, or --to s"
    with pytest.raises(AttlasError, match=said):
        export(run, format_, tmp_path / "out")


@pytest.mark.parametrize("format_", ["huggingface", "ctranslate2"])
@pytest.mark.parametrize("side", ["encoder_patterns", "decoder_patterns"])
def test_a_pattern_is_more_than_these_formats_can_hold(
    tmp_path: Path, format_: str, side: str
) -> None:
    config = small(norm="post", **{side: ("window(2)",)})
    run = run_of(tmp_path / "run", config)
    said = r"look everywhere for .*; got the pattern window\(2\); use --to onnx, or --to safete"
    with pytest.raises(AttlasError, match=said):
        export(run, format_, tmp_path / "out")


def test_what_no_graph_can_hold_is_not_sent_to_graphs() -> None:
    assert "--to onnx" in unsupported("Marian", "this", "that").hint
    assert (
        unsupported("ONNX", "this", "that").hint == "use --to safetensors, which holds every model"
    )


def test_another_search_is_written_down_where_searches_are(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", small(norm="post"), num_beams=4)
    search = DecodingConfig(num_beams=7, length_penalty=0.5)
    export(run, "huggingface", tmp_path / "own")
    export(run, "huggingface", tmp_path / "other", search=search)
    beams = [
        json.loads((tmp_path / name / "generation_config.json").read_bytes())["num_beams"]
        for name in ("own", "other")
    ]
    assert beams == [4, 7]
    for format_ in ("safetensors", "ctranslate2"):
        with pytest.raises(AttlasError, match="search for huggingface or onnx, which write them"):
            export(run, format_, tmp_path / "none", search=search)
    assert not (tmp_path / "none").exists()

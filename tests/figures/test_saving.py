"""Figures as files."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from attlas import figures
from attlas.errors import AttlasError

HEADS = {".png": b"\x89PNG\r\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}
SVG = "{http://www.w3.org/2000/svg}"
DRAW = """
from attlas import figures
for suffix in (".png", ".svg", ".pdf"):
    figure = figures.heatmap([[0.25, 0.75], [0.5, 0.5]], ["a", "$b$"], ["x", "y"], title="a title")
    figures.save(figure, {folder!r} + "/map" + suffix)
"""


def example(token: str = "a") -> Figure:
    return figures.heatmap([[0.25, 0.75]], [token, "b"], ["x"])


@pytest.mark.parametrize("suffix", HEADS)
@pytest.mark.parametrize("as_text", [str, Path])
def test_the_suffix_says_the_format(tmp_path: Path, suffix: str, as_text: type) -> None:
    for name in (f"map{suffix}", f"map2{suffix.upper()}"):
        figures.save(example(), as_text(tmp_path / name))
        assert (tmp_path / name).read_bytes().startswith(HEADS[suffix])


@pytest.mark.parametrize("name", ["map.jpg", "map", "map.png.txt"])
def test_another_suffix_names_the_valid_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(AttlasError, match=r"ends in \.png, \.svg, \.pdf; got .*choose one"):
        figures.save(example(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    with pytest.raises(AttlasError, match=r"expected to write .*choose a folder that exists"):
        figures.save(example(), tmp_path / "none" / "map.png")


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    for seed, folder in enumerate(folders):
        folder.mkdir()
        subprocess.run(
            [sys.executable, "-c", DRAW.format(folder=str(folder))],
            check=True,
            env={"PYTHONHASHSEED": str(seed), "SOURCE_DATE_EPOCH": str(10**9 * seed)},
        )
    for suffix in HEADS:
        one, other = ((folder / f"map{suffix}").read_bytes() for folder in folders)
        assert one == other


def test_the_text_of_an_svg_is_text(tmp_path: Path) -> None:
    figures.save(example("<wort> & $x$"), tmp_path / "map.svg")
    tree = ElementTree.parse(tmp_path / "map.svg")
    texts = {text.text for text in tree.iter(f"{SVG}text")}
    assert {"<wort>·&·$x$", "b", "x", "source", "target", ".25", ".75"} <= texts


@pytest.mark.usefixtures("machine_with_cjk")
def test_an_svg_carries_the_letters_that_a_viewer_may_not_have(tmp_path: Path) -> None:
    figures.save(example("日本b"), tmp_path / "map.svg")
    tree = ElementTree.parse(tmp_path / "map.svg")
    assert not list(tree.iter(f"{SVG}text"))
    outlines = {path.get("id"): path.get("d") for path in tree.iter(f"{SVG}path")}
    east = [id_ for id_ in outlines if (id_ or "").startswith("NotoSansCJK")]
    assert len(east) == 2  # each letter once
    assert len({outlines[id_] for id_ in east}) == 2  # and no box that stands for both
    used = {use.get("{http://www.w3.org/1999/xlink}href") for use in tree.iter(f"{SVG}use")}
    assert {f"#{id_}" for id_ in east} <= used


@pytest.mark.usefixtures("machine_with_cjk")
def test_a_pdf_embeds_outlines_that_its_readers_can_draw(tmp_path: Path) -> None:
    """A Type 42 font holds TrueType outlines alone; the letters of a CFF font go as Type 3."""
    figures.save(example(), tmp_path / "latin.pdf")
    assert b"/CIDFontType2" in (tmp_path / "latin.pdf").read_bytes()
    figures.save(example("日本"), tmp_path / "cjk.pdf")
    content = (tmp_path / "cjk.pdf").read_bytes()
    assert b"/CIDFontType2" not in content
    assert b"/Type3" in content


def test_drawing_and_saving_leave_matplotlibs_settings_alone(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    figures.save(example(), tmp_path / "map.svg")
    assert dict(mpl.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules or not mpl.pyplot.get_fignums()


@pytest.mark.parametrize("suffix", HEADS)
@pytest.mark.parametrize("what", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("when", ["while it is drawn", "while it is written"])
def test_a_figure_that_fails_leaves_the_older_one_and_nothing_else(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    what: type[BaseException],
    when: str,
) -> None:
    path = tmp_path / f"map{suffix}"
    figures.save(example(), path)
    before = path.read_bytes()

    def half(self: Figure | Path, target: object, **_: object) -> None:
        if isinstance(self, Path):
            with self.open("wb") as file:
                file.write(before[: len(before) // 2])
        elif isinstance(target, str | Path):
            Path(target).write_bytes(before[: len(before) // 2])
        raise what(28, "No space left on device")

    if when == "while it is drawn":
        monkeypatch.setattr(Figure, "savefig", half)
    else:
        monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises((KeyboardInterrupt, OSError, AttlasError)):
        figures.save(example("c"), path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_reported_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, content: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(AttlasError, match=r"No space left on device; make room there, or"):
        figures.save(example(), tmp_path / "map.png")


def test_a_figure_goes_through_a_pipe(tmp_path: Path) -> None:
    pipe, found = tmp_path / "map.svg", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()), daemon=True)
    reader.start()
    figures.save(example(), pipe)
    reader.join(60)
    figures.save(example(), tmp_path / "plain.svg")
    assert found == [(tmp_path / "plain.svg").read_bytes()]
    assert pipe.is_fifo()


def test_a_link_stays_a_link_and_its_file_keeps_its_rights(tmp_path: Path) -> None:
    real, link = tmp_path / "folder" / "real.png", tmp_path / "map.png"
    real.parent.mkdir()
    link.symlink_to(real)
    figures.save(example(), link)  # which leads nowhere yet
    real.chmod(0o600)
    figures.save(example("c"), link)
    assert link.is_symlink()
    assert real.read_bytes().startswith(HEADS[".png"])
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert list(real.parent.iterdir()) == [real]


def test_a_name_as_long_as_a_name_may_be_is_enough_for_a_figure(tmp_path: Path) -> None:
    path = tmp_path / f"{'a' * 251}.png"
    figures.save(example(), path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_notebook_shows_a_figure_at_its_size_in_inches() -> None:
    figure = example()
    picture, size = figure._repr_png_()
    assert picture.startswith(HEADS[".png"])
    pixels = [int.from_bytes(picture[start : start + 4], "big") for start in (16, 20)]  # IHDR
    inches = figure.get_size_inches()
    assert pixels == [int(length * figure.dpi) for length in inches]
    assert [size["width"], size["height"]] == [round(length * 96) for length in inches]

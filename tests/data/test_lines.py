import bz2
import contextlib
import gzip
import io
import lzma
import sys
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import lines, read_conllu, read_labelled, read_lines, read_pairs, stream_lines
from attlas.data.lines import Lines, check_given_again
from attlas.errors import AttlasError

UNBROKEN = st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r\ufeff"))


@given(texts=st.lists(UNBROKEN), last_ended=st.booleans(), packed=st.booleans())
def test_lines_are_what_stands_between_line_feeds(tmp_path_factory, texts, last_ended, packed):
    path = tmp_path_factory.mktemp("lines") / "text"
    # Without a last line feed, an empty last line is no line: there is nothing there.
    last_ended = last_ended or not texts or not texts[-1]
    content = ("\n".join(texts) + ("\n" if last_ended and texts else "")).encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    assert list(read_lines(path).texts) == texts
    assert list(stream_lines(path)) == texts


def test_no_other_separator_of_unicode_ends_a_line(tmp_path):
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\rh"
    (tmp_path / "a").write_bytes(f"{text}\nnext\n".encode())
    assert read_lines(tmp_path / "a").texts == (text, "next")


OLD = {  # lines of Mac OS before 2001
    "two.txt": "one\rtwo\r",
    "unended.txt": "one\rtwo",
    "one.txt": "one\r",
    "appended.txt": "one\rtwo\rthree\n",
    "texts.csv": "text,label\ra,b\r",
    "pairs.tsv": "a\tb\rc\td\r",
    "texts.jsonl": '{"text": "a", "label": "b"}\r{"text": "c", "label": "d"}\r',
    "words.conllu": "1\ta\t_\r",
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", OLD)
def test_lines_that_end_with_carriage_returns_alone_are_an_error(tmp_path, name, packed):
    content = OLD[name].encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
    readers = [read_lines, read_labelled, lambda path: read_pairs([path], (1, 2))]
    if not content.endswith(b"\n"):  # a stream has given its only line by then
        readers += [lambda path: [*stream_lines(path)], lambda path: [*read_conllu(path)]]
    for read in readers:
        with pytest.raises(AttlasError, match=r"end with a line feed in .*carriage .*convert"):
            read(tmp_path / name)


def test_carriage_returns_within_lines_are_counted_as_text(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"a\rb\tc\nd\te\n")
    corpus = read_pairs([tmp_path / "a.tsv"])
    assert corpus.pairs == (("a\rb", "c"), ("d", "e"))
    assert "1 carriage return within lines, part of the text" in str(corpus.report)


def test_one_carriage_return_before_a_line_feed_is_taken_off_and_counted(tmp_path):
    (tmp_path / "a").write_bytes(b"one\r\ntwo\r\r\nthree\nfour\r")
    lines = read_lines(tmp_path / "a")
    assert lines.texts == ("one", "two\r", "three", "four\r")
    assert lines.carriage_returns == 2


def test_a_byte_order_mark_at_the_start_is_not_text(tmp_path):
    (tmp_path / "a").write_text("\ufeffone\n\ufefftwo\n", encoding="utf-8")
    assert read_lines(tmp_path / "a").texts == ("one", "\ufefftwo")


def test_gzip_is_known_by_its_bytes_and_not_by_its_name(tmp_path):
    (tmp_path / "a.txt").write_bytes(gzip.compress(b"one\n"))
    (tmp_path / "b.gz").write_bytes(b"two\n")
    assert read_lines(tmp_path / "a.txt").texts == ("one",)
    assert read_lines(tmp_path / "b.gz").texts == ("two",)


def test_a_dash_reads_the_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("grün\n\n".encode())))
    assert read_lines("-").texts == ("grün", "")


def test_bytes_that_are_not_utf_8_are_named_by_file_and_line(tmp_path):
    (tmp_path / "latin.txt").write_bytes("gut\nschön\n".encode("latin-1"))
    with pytest.raises(AttlasError, match=r"latin\.txt; got byte 0xf6 at byte 4 of line 2"):
        read_lines(tmp_path / "latin.txt")


def test_a_missing_file_is_named():
    with pytest.raises(AttlasError, match=r"no file at nowhere\.txt"):
        read_lines(Path("nowhere.txt"))


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(AttlasError, match="a readable file"):
        read_lines(tmp_path)


@pytest.mark.parametrize("read", [read_lines, read_labelled, lambda path: [*stream_lines(path)]])
def test_a_name_that_no_file_can_have_is_an_error_of_the_caller(read):
    with pytest.raises(AttlasError, match=r"a readable file at .*; got .*null"):
        read("a\0b")


@pytest.mark.parametrize("damage", [lambda b: b[:-9], lambda b: b[:12] + b"xxxx" + b[16:]])
def test_a_damaged_gzip_file_is_an_error_and_not_a_shorter_text(tmp_path, damage):
    whole = gzip.compress(b"".join(b"line %d\n" % n for n in range(1000)))
    (tmp_path / "a.gz").write_bytes(damage(whole))
    with pytest.raises(AttlasError, match=r"a whole gzip file at .*a\.gz"):
        read_lines(tmp_path / "a.gz")


@pytest.mark.parametrize("word", ["gustar", "ajustarla", "ustar"])
def test_a_text_with_ustar_where_an_archive_has_it_is_a_text(tmp_path, word):
    line = "x" * (257 - word.index("ustar")) + word + " la vida"
    (tmp_path / "a.txt").write_text(f"{line}\n")
    assert read_lines(tmp_path / "a.txt").texts == (line,)


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_an_archive_of_any_kind_is_known(tmp_path, kind):
    (tmp_path / "text").write_text("a\n")
    with tarfile.open(tmp_path / "a", "w", format=kind) as packed:
        packed.add(tmp_path / "text", "text")
    with pytest.raises(AttlasError, match=r"an archive \(tar\)"):
        read_lines(tmp_path / "a")


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz"])
def test_an_archive_is_no_text_and_is_to_be_unpacked(tmp_path, name):
    (tmp_path / "train.jsonl").write_text('{"text": "a", "label": "b"}\n')
    path = tmp_path / name
    if name == "a.zip":
        with zipfile.ZipFile(path, "w") as packed:
            packed.write(tmp_path / "train.jsonl", "train.jsonl")
    else:
        with tarfile.open(path, "w:gz" if name.endswith("gz") else "w") as packed:
            packed.add(tmp_path / "train.jsonl", "train.jsonl")
    said = rf"plain or gzipped, at .*{name}; got an archive \((zip|tar)\); unpack it"
    for read in (read_lines, read_labelled, lambda path: list(stream_lines(path))):
        with pytest.raises(AttlasError, match=said):
            read(path)


@pytest.mark.parametrize("kind", ["xz", "bzip2", "zstd"])
def test_other_ways_of_packing_are_named(tmp_path, kind):
    packed = {
        "xz": lzma.compress(b"one\n"),
        "bzip2": bz2.compress(b"one\n"),
        "zstd": bytes.fromhex("28b52ffd04582100006f6e650a3f0a7d11"),
    }
    (tmp_path / "a").write_bytes(packed[kind])
    with pytest.raises(AttlasError, match=rf"got an? {kind} file; unpack it"):
        read_lines(tmp_path / "a")


@pytest.mark.parametrize(
    ("begin", "kind"),
    [(b"\x7fELF\x02\x01", "a program"), (b"\x89PNG\r\n", "a PNG image"), (b"%PDF-1.7\n", "a PDF")],
)
def test_what_is_no_text_is_named(tmp_path, begin, kind):
    (tmp_path / "a").write_bytes(begin + b"\xd0\n")
    with pytest.raises(AttlasError, match=rf"a text file at .*; got {kind}.*; name a file of text"):
        read_lines(tmp_path / "a")


@pytest.mark.parametrize("code", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_no_utf_8(tmp_path, code):
    (tmp_path / "a").write_bytes("the cat\nsaß\n".encode(code))
    with pytest.raises(AttlasError, match=r"UTF-8 text .* as in UTF-16; convert"):
        read_lines(tmp_path / "a")


def test_a_nul_among_letters_is_a_character(tmp_path):
    (tmp_path / "a").write_bytes(b"a\0b\nnext\n")
    assert read_lines(tmp_path / "a").texts == ("a\0b", "next")


@pytest.mark.parametrize("terminal", [True, False])
def test_data_from_the_standard_input_is_not_waited_for_at_a_keyboard(monkeypatch, terminal):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(sys.stdin, "isatty", lambda: terminal)
    said = r"the data with which runs/my began, .*; got a terminal there; give it again"
    expected = pytest.raises(AttlasError, match=said) if terminal else contextlib.nullcontext()
    with expected:
        check_given_again(Path("runs/my"), "give it again")


def test_blank_lines_at_the_end_are_no_rows_of_a_table() -> None:
    assert Lines("it", ("a", "", "b", " ", "")).rows == ("a", "", "b")
    assert Lines("it", ("a", "\t")).rows == ("a", "\t")  # two empty fields
    assert Lines("it", ("", "")).rows == ()


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
def test_a_line_beyond_the_longest_is_refused_with_its_number(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(lines, "LONGEST_LINE", 100)
    path = tmp_path / "text"
    for longest in (b"x" * 99 + b"\n", b"x" * 100, b"\n"):
        path.write_bytes(pack(b"a\nb\n" + longest))
        assert [len(text) for text in read_lines(path).texts][:2] == [1, 1]
    for longest in (b"x" * 100 + b"\n", b"x" * 101, b"x" * 10_000):
        path.write_bytes(pack(b"a\nb\n" + longest + b"\nc\n"))
        with pytest.raises(
            AttlasError, match=r"at most 100 bytes in .*text; got a longer one, line 3"
        ):
            read_lines(path)


def test_a_line_beyond_the_longest_is_refused_on_the_standard_input_after_those_before_it(
    monkeypatch,
):
    monkeypatch.setattr(lines, "LONGEST_LINE", 100)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\n" + b"x" * 200)))
    found = stream_lines("-")
    assert next(found) == "a"
    with pytest.raises(AttlasError, match="in the standard input; got a longer one, line 2"):
        next(found)


def test_a_small_gzip_file_does_not_ask_for_the_memory_that_it_names(tmp_path):
    """256 MiB of one line, in 256 KB: it is refused once as much as the longest has been read."""
    path, packed = tmp_path / "bomb.gz", gzip.compress(bytes(2**26), 9)
    path.write_bytes(packed * 4)  # members follow each other
    tracemalloc.start()
    try:
        with pytest.raises(AttlasError, match="a longer one, line 1"):
            read_lines(path)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 8 * lines.LONGEST_LINE

"""Pairs whose text is too large for memory are those that would be in memory."""

import gc
import os
import random
import tempfile
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from attlas._text import in_blocks
from attlas.data import (
    Batches,
    BatchingConfig,
    Corpus,
    FilesData,
    FilterConfig,
    Pair,
    VocabularyConfig,
    build_vocabularies,
    corpus_of,
    encode_corpus,
    encoded_files,
    lines,
    read_pairs,
    sample_corpus,
    stored_pairs,
)
from attlas.data.base import note_overlap
from attlas.data.corpus import Fault, filtered
from attlas.data.encoded_files import ENCODED, EncodedFiles, write_encoded
from attlas.data.lines import StreamedLines, read_lines
from attlas.data.stored_pairs import StoredPairs
from attlas.errors import AttlasError

PAIRS = 9_000
MADE_OF = {"vocabularies": {}, "data": {"some": "data"}}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two files of 9,000 lines, of which each hundredth target is empty."""
    folder, chance = tmp_path_factory.mktemp("pairs"), random.Random(1)
    words = [f"w{number}" for number in range(50)]
    lines: dict[str, list[str]] = {"en": [], "de": []}
    for number in range(PAIRS):
        lines["en"].append(" ".join(chance.choices(words, k=chance.randint(1, 6))))
        lines["de"].append("".join(chance.choices("äb c\0", k=5)) if number % 100 else "")
    for side, texts in lines.items():
        (folder / side).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return str(folder / "en"), str(folder / "de")


def stored(read: Callable[[], Corpus], monkeypatch: pytest.MonkeyPatch) -> Corpus:
    """The same with next to no memory for text."""
    with monkeypatch.context() as patch:
        patch.setattr(stored_pairs, "IN_MEMORY", 1_000)
        corpus = read()
    assert corpus.is_stored
    return corpus


def assert_same(stored: Corpus, held: Corpus) -> None:
    assert tuple(stored.pairs) == held.pairs
    assert tuple(stored.lines) == held.lines
    assert tuple(stored.sources) == held.sources
    assert tuple(stored.targets) == held.targets
    assert (stored.name, stored.checksum) == (held.name, held.checksum)
    assert stored.report == held.report


def test_pairs_of_two_files_are_those_that_are_held(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = read_pairs(files)
    assert not held.is_stored
    damaged = sum("\0" in text for pair in held.pairs for text in pair)
    assert f"{damaged:,} texts with U+0000" in str(held.report)
    assert_same(stored(lambda: read_pairs(files), monkeypatch), held)


@pytest.mark.parametrize(("name", "quote"), [("pairs.tsv", ""), ("pairs.csv", '"')])
def test_pairs_of_a_table_are_those_that_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, quote: str
) -> None:
    separator = "," if quote else "\t"
    inner = "\r\nb" if quote else "b"  # a line break, which is left out
    rows = [f"{quote}a {n}{quote}{separator}{quote}{n % 7}{inner * (not n % 50)}{quote}"
            for n in range(5_000)]  # fmt: skip
    (tmp_path / name).write_text("".join(f"{row}\n" for row in rows) + "\n\n", encoding="utf-8")
    held = read_pairs([tmp_path / name], (1, 2))
    assert_same(stored(lambda: read_pairs([tmp_path / name], (1, 2)), monkeypatch), held)


def test_few_pairs_of_very_long_texts_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_pairs, "IN_MEMORY", 100_000)
    monkeypatch.setattr(stored_pairs, "_AT_ONCE", 100_000)
    pairs = [Pair(chr(97 + n % 26) * (n * 37 % 4_000), str(n)) for n in range(1_000)]

    def taken() -> tuple[Sequence[Pair], Sequence[int]]:
        collector = stored_pairs.PairCollector()
        for number, (source, target) in enumerate(pairs):
            collector.add(number, Pair(f"x{source}", target))
        return collector.finish()

    tracemalloc.start()
    try:
        found, numbers = taken()
        assert isinstance(found, StoredPairs)
        assert sum(len(source) for source, _ in found) == sum(1 + len(pair[0]) for pair in pairs)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000  # of 2,000,000
    assert list(numbers) == list(range(1_000))
    assert [Pair(source[1:], target) for source, target in found] == pairs
    assert found[517] == Pair(f"x{pairs[517].source}", "517")
    assert found[60:70] == tuple(Pair(f"x{source}", target) for source, target in pairs[60:70])
    blocks = [*found.blocks(64, 640)]
    assert [text for sources, _ in blocks for text in sources] == [
        f"x{pair.source}" for pair in pairs[64:640]
    ]
    assert len(blocks) == 9  # of 64 pairs, which are more than has room


def test_long_texts_come_in_shorter_blocks() -> None:
    texts = [str(n) * (n % 9) for n in range(1_000)]
    blocks = [*in_blocks(iter(texts), 200, 500)]
    assert [text for block in blocks for text in block] == texts
    assert {len(block) for block in blocks[:-1]} <= {64, 128}
    assert [len(block) for block in in_blocks(iter(texts), 200, 10**6)] == [200] * 5
    assert [*in_blocks(iter([]))] == []
    assert [*in_blocks(iter([b"a"]))] == [[b"a"]]


def test_faults_are_counted_and_few_of_their_places_are_held() -> None:
    pair = Pair("", "x")
    tracemalloc.start()
    try:
        found = filtered(((number, pair) for number in range(20_000)), FilterConfig(), "empty")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 500_000  # the places alone have 2,000,000
    assert found.left_out == (Fault("an empty source", 20_000, (0, 1, 2, 3, 4)),)


def test_a_pair_is_found_by_its_place(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = read_pairs(files).pairs
    pairs = stored(lambda: read_pairs(files), monkeypatch).pairs
    assert len(pairs) == len(held)
    for place in (0, 1, 63, 64, 65, 4095, 4096, 4097, len(held) - 1, -1, -len(held)):
        assert pairs[place] == held[place]
    for part in (
        slice(60, 5_000),
        slice(3, 90, 7),
        slice(5, 5),
        slice(9, 2),
        slice(None, None, -1),
    ):
        assert pairs[part] == held[part]
    with pytest.raises(IndexError):
        pairs[len(held)]


@pytest.mark.parametrize("held_back", [1, 20, 0.3])
@pytest.mark.parametrize("filters", [FilterConfig(), FilterConfig(max_length=12)])
def test_the_same_pairs_are_held_back(
    files: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    held_back: float,
    filters: FilterConfig,
) -> None:
    data = FilesData(train=files, held_back=held_back, filters=filters)
    held = data.load()
    with monkeypatch.context() as patch:
        patch.setattr(stored_pairs, "IN_MEMORY", 1_000)
        splits = data.load()
    assert splits.train.is_stored
    assert "several translations" in str(held.train.report)
    assert_same(splits.train, held.train)
    assert (tuple(splits.valid.pairs), splits.valid.report) == (held.valid.pairs, held.valid.report)


def test_sources_of_the_validation_set_are_found_in_stored_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [f"{n} a\u3000b" if n % 2 else f"{n} a  b " for n in range(300)]
    wanted = ["7 a b", " 8 a b", "300 a b", "plain"]
    for name, texts in (("train", [*sources, *map(str, range(900))]), ("valid", wanted)):
        text = "".join(f"{text}\n" for text in texts)
        (tmp_path / name).write_text(text, encoding="utf-8")
    paths = {name: (str(tmp_path / name),) * 2 for name in ("train", "valid")}
    held = FilesData(**paths).load()
    valid = read_pairs(paths["valid"])
    found = stored(lambda: FilesData(**paths).load().train, monkeypatch)
    assert note_overlap(found, valid) == held.valid
    assert held.valid.report.remarks == ("2 sources of it in the training data as well",)
    assert note_overlap(found, valid.part([2, 3], "", valid.report)).report.remarks == ()


def test_a_space_at_the_ends_of_a_block_does_not_hide_a_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, texts in (
        ("train", [" the cat", *(f"plain {n}" for n in range(200)), "a dog "]),
        ("valid", ["the cat", "a dog"]),
    ):
        text = "".join(f"{text}\n" for text in texts)
        (tmp_path / name).write_text(text, encoding="utf-8")
    paths = {name: (str(tmp_path / name),) * 2 for name in ("train", "valid")}
    found = stored(lambda: FilesData(**paths).load().train, monkeypatch)
    assert note_overlap(found, read_pairs(paths["valid"])).report.remarks == (
        "2 sources of it in the training data as well",
    )


def test_pairs_in_memory_are_counted_without_other_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fork() -> int:
        raise AssertionError("a process was forked")

    monkeypatch.setattr(os, "fork", fork)
    pairs = [Pair(f"the cat {n}", f"le chat {n}") for n in range(300)]
    config = VocabularyConfig(kind="bpe", size=290, shared=True)
    assert len(build_vocabularies(config, pairs, 2).target) == 290


def test_the_file_has_no_name_and_is_closed_with_the_last_that_reads_it(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    corpus = stored(lambda: read_pairs(files), monkeypatch)
    assert not list(tmp_path.iterdir())
    assert isinstance(corpus.pairs, StoredPairs)
    descriptor, sources = corpus.pairs._descriptor, corpus.sources
    del corpus
    gc.collect()
    assert len(list(sources)) == len(sources) == len(read_pairs(files))
    del sources
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_disk_without_room_is_reported(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stored_pairs, "write_whole", full)
    with pytest.raises(AttlasError, match=r"room for the text .*no space left .*TMPDIR"):
        stored(lambda: read_pairs(files), monkeypatch)


def test_a_fault_that_is_an_error_is_reported_after_files_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n\nthree\n", encoding="utf-8")
    (tmp_path / "b").write_text("eins\n", encoding="utf-8")
    strict = FilterConfig(empty="error")
    with pytest.raises(AttlasError, match=r"got 3 in .* and 1 in "):
        read_pairs([tmp_path / "a", tmp_path / "b"], None, strict)
    with pytest.raises(AttlasError, match="line 2 with an empty source"):
        read_pairs([tmp_path / "a", tmp_path / "a"], None, strict)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"a", b"a\n", b"\xef\xbb\xbfa\nb", b"a\r\nb\r\n", b"\n\n", b"a\n \n\n", b"\n",
        b"x\n" * 9_000 + b"y\r\n" + b"z\rz\n" * 5_000 + b"end",
    ],
)  # fmt: skip
def test_streamed_lines_are_those_of_the_whole_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    streamed, lines = StreamedLines(tmp_path / "a"), read_lines(tmp_path / "a")
    assert tuple(streamed) == lines.texts
    assert (streamed.count, streamed.carriage_returns, streamed.returns_inside) == (
        len(lines), lines.carriage_returns, lines.returns_inside,
    )  # fmt: skip
    assert tuple(StreamedLines(tmp_path / "a").rows) == lines.rows


@pytest.mark.parametrize("at_once", [1, 2, 7, 64])
@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_streamed_lines_are_the_same_wherever_a_reading_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int, ending: str
) -> None:
    texts = ["é" * (n % 9) + ("\r" if n == 700 else "") + "." for n in range(1_000)]
    (tmp_path / "a").write_bytes(("\n".join(texts) + ending).encode())
    monkeypatch.setattr(lines, "_AT_ONCE", at_once)
    streamed = StreamedLines(tmp_path / "a")
    assert [*streamed] == texts
    assert (streamed.count, streamed.returns_inside) == (1_000, 1)
    assert streamed.carriage_returns == (ending == "\r\n")


def test_a_streamed_line_beyond_the_longest_is_refused_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 100)
    for longest in (b"x" * 99 + b"\n", b"x" * 100, b"\n"):
        (tmp_path / "a").write_bytes(b"a\nb\n" * 40 + longest)
        assert len([*StreamedLines(tmp_path / "a")]) == 81
    for longest in (b"x" * 100 + b"\n", b"x" * 101, b"x" * 10_000):
        (tmp_path / "a").write_bytes(b"a\nb\n" * 40 + longest + b"\nc\n")
        with pytest.raises(
            AttlasError, match=r"at most 100 bytes in .*; got a longer one, line 81"
        ):
            list(StreamedLines(tmp_path / "a"))


@pytest.mark.parametrize("content", [b"a\rb\n", b"a\rb", b"ok\n" * 5_000 + b"\xff\n"])
def test_streamed_lines_refuse_what_the_whole_file_is_refused_for(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(AttlasError) as whole:
        read_lines(tmp_path / "a")
    with pytest.raises(AttlasError) as streamed:
        list(StreamedLines(tmp_path / "a"))
    assert str(streamed.value) == str(whole.value)


# As ids in files.


@pytest.fixture
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded_files, "ROWS", 1_024)


@pytest.mark.usefixtures("_small_files")
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("shared", [True, False])
def test_ids_in_files_are_those_in_memory(
    files: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    processes: int,
    shared: bool,
) -> None:
    held = read_pairs(files)
    train = stored(lambda: read_pairs(files), monkeypatch)
    valid = corpus_of([Pair("w1 w2", "b"), Pair("w3", "ä")], "valid")
    vocabularies = build_vocabularies(VocabularyConfig(size=340, shared=shared), held.pairs)
    write_encoded(tmp_path, train, valid, vocabularies, MADE_OF, processes)
    found = EncodedFiles(tmp_path, MADE_OF)
    assert found.fault() == ""
    assert [path.name for path in tmp_path.iterdir()] == [ENCODED]

    in_memory, in_files = encode_corpus(held, vocabularies), found.encoded(train)
    assert in_files is not None
    config = BatchingConfig(max_tokens=400, max_length=5)
    ours, theirs = Batches(in_files, config, 1), Batches(in_memory, config, 1)
    assert ours.report == theirs.report
    assert ours.report.skipped > 0
    for epoch in (0, 3):
        order = ours.epoch(epoch)
        assert order == theirs.epoch(epoch)
        for indices in order[:20]:
            one, other = ours.batch(indices), theirs.batch(indices)
            assert one.source.equal(other.source)
            assert one.target.equal(other.target)

    corpora = found.corpora(lambda: held)
    assert corpora is not None
    assert_same(corpora[0], held)
    assert (corpora[1].pairs, corpora[1].report) == (valid.pairs, valid.report)


def test_sampled_segmentations_are_those_of_pairs_in_memory(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = read_pairs(files)
    train = stored(lambda: read_pairs(files), monkeypatch)
    vocabularies = build_vocabularies(VocabularyConfig(size=340), held.pairs)
    one, other = (sample_corpus(corpus, vocabularies, 0.2, 5, 1) for corpus in (train, held))
    assert [row.tolist() for row in (one.target[n] for n in range(500))] == [
        row.tolist() for row in (other.target[n] for n in range(500))
    ]
    assert one.source.lengths.tolist() == other.source.lengths.tolist()


@pytest.mark.usefixtures("_small_files")
@pytest.mark.parametrize(
    ("damage", "reported"),
    [
        (lambda folder: (folder / "00003.ids").unlink(), "00003.ids: no such file"),
        (lambda folder: (folder / "lines").write_bytes(b"1234"), "lines has another size"),
        (lambda folder: flip(folder / "00001.ids"), "00001.ids has other bytes"),
        (lambda folder: flip(folder / "source.lengths"), "source.lengths has other bytes"),
        (lambda folder: flip(folder / "valid.txt"), "valid.txt has other bytes"),
        (lambda folder: (folder / "seal.json").unlink(), "has no seal.json"),
        (lambda folder: (folder / "seal.json").write_text("{"), "seal.json is damaged"),
        (lambda folder: (folder / "seal.json").write_text("[]"), "seal.json is damaged"),
        (lambda folder: flip(folder / "seal.json"), "seal.json is damaged"),
    ],
)
def test_a_damaged_file_is_named(
    files: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    damage: Callable[[Path], object],
    reported: str,
) -> None:
    train = stored(lambda: read_pairs(files), monkeypatch)
    vocabularies = build_vocabularies(VocabularyConfig(kind="words"), train.pairs)
    write_encoded(tmp_path, train, train.part([1, 2], "v", train.report), vocabularies, MADE_OF)
    damage(tmp_path / ENCODED)
    assert reported in EncodedFiles(tmp_path, MADE_OF).fault()


def test_files_of_other_data_or_vocabularies_are_not_used(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    train = stored(lambda: read_pairs(files), monkeypatch)
    vocabularies = build_vocabularies(VocabularyConfig(kind="words"), train.pairs)
    write_encoded(tmp_path, train, train.part([1], "v", train.report), vocabularies, MADE_OF)
    for data in (None, {"other": "data"}):
        other = EncodedFiles(tmp_path, {**MADE_OF, "data": data})
        assert other.corpora(lambda: train) is None
        assert other.encoded(train) is not None  # which has been read, and is the same
        assert other.encoded(train.part([1, 2], "part", train.report)) is None
    others = EncodedFiles(tmp_path, {**MADE_OF, "vocabularies": {"tokenizer.model": "0"}})
    assert "another version or vocabulary" in others.fault()
    assert others.encoded(train) is None


def flip(path: Path) -> None:
    """Change a bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)

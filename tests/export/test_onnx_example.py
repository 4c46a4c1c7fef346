"""`translate.py` of an exported folder: the graphs in use, without attlas and without torch."""

import contextlib
import io
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import MarianTokenizer

from attlas.data import END, UNKNOWN, Characters, Vocabularies, VocabularyConfig, build_vocabulary
from attlas.export import export
from attlas.inference import Translator
from attlas.inference.translator import translation_remarks
from attlas.models import RecurrentConfig, TransformerConfig
from attlas.runs import Run
from support.exportable import JOINT, WORDS, leaning, run_of, small, subwords
from support.onnx_runtime import ALONE, example

SUBWORDS = subwords()
MODELS = {
    "transformer": small(),
    "transformer, learned": small(positions="learned", max_positions=400),
    "recurrent": RecurrentConfig(embed_dim=8, hidden_dim=8, encoder_hidden_dim=8, dropout=0.0),
    "none": RecurrentConfig(embed_dim=8, hidden_dim=8, encoder_hidden_dim=8, attention="none"),
}
LETTERS = Characters("abcdefgh ▁é")
VOCABULARIES = {
    "subwords": SUBWORDS,
    "joint subwords": Vocabularies(SUBWORDS.source, SUBWORDS.source),
    "words": WORDS,
    "joint words": JOINT,
    "characters": Vocabularies(LETTERS, Characters("xyz 日")),
}
TEXTS = [
    "The 3th house  is 2 miles away",
    "",
    "a0 a5  a16 unknown b2 b3",
    "   ",
    "  é naïve ▁▁ “quoted” 日本 🎉 ",
    "bad cafe",
    "a" * 70,
]


def translated(folder: Path, text: str) -> tuple[str, list[str]]:
    """The translations, and what was told on the standard error."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE, folder / "translate.py"],
        input=text.encode(),
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode().splitlines()


def written(run: Run, texts: list[str]) -> tuple[str, list[str]]:
    """What attlas translates and tells."""
    found = list(Translator(run).stream(texts))
    reported = [
        f"line {number}: {remark}"
        for number, one in enumerate(found, 1)
        for remark in translation_remarks(one.cut, one.finished, one.known)
    ]
    return "".join(f"{one.text}\n" for one in found), reported


@pytest.mark.parametrize("kind", VOCABULARIES)
@pytest.mark.parametrize("model", ["transformer", "recurrent"])
def test_it_writes_what_attlas_writes(tmp_path: Path, model: str, kind: str) -> None:
    limits = {"max_len_a": 0.5, "max_len_b": 9}
    run = run_of(tmp_path / "run", MODELS[model], VOCABULARIES[kind], method="greedy", **limits)
    export(run, "onnx", tmp_path / "out")
    expected = written(run, TEXTS)
    assert expected[0].strip()
    assert translated(tmp_path / "out", "".join(f"{text}\n" for text in TEXTS)) == expected


@pytest.mark.parametrize("model", MODELS)
def test_more_lines_than_a_batch_come_out_in_order(tmp_path: Path, model: str) -> None:
    config: RecurrentConfig | TransformerConfig = MODELS[model]
    run = run_of(tmp_path / "run", config, WORDS, method="greedy")
    export(run, "onnx", tmp_path / "out")
    texts = [" ".join(f"a{(n * k) % 17}" for k in range(n % 9)) for n in range(70)]
    # The last line may end without a line feed, others with a carriage return before it.
    assert translated(tmp_path / "out", "\r\n".join(texts)) == written(run, texts)


@given(data=st.data())
def test_what_the_limits_cut_is_cut_as_attlas_cuts_it_and_reported(data: st.DataObject) -> None:
    longest = data.draw(st.integers(3, 12), "longest")
    learned = data.draw(st.booleans())
    most = min(4, longest - 1) if learned else 4  # tokens for which there is a position
    limits: dict[str, Any] = {
        "max_len_a": data.draw(st.sampled_from([0.0, 0.7, 1.3])),
        "max_len_b": data.draw(st.integers(4, 20)),
        "min_length": data.draw(st.integers(0, most)),
        "max_source_length": data.draw(st.sampled_from([0, 1, 5, 40])),
    }
    settings: dict[str, Any] = {"positions": "learned", "max_positions": longest} if learned else {}
    texts = [" ".join(f"a{(n * k) % 19}" for k in range(n)) for n in (1, 2, longest, 0, 25, 4)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = run_of(folder / "run", small(**settings), WORDS, method="greedy", **limits)
        export(run, "onnx", folder / "out")
        translator = example(folder / "out").Translator(folder / "out")
        reported = io.StringIO()
        with contextlib.redirect_stderr(reported):
            found = translator(texts)
        expected = written(run, texts)
        assert "".join(f"{text}\n" for text in found) == expected[0]
        assert reported.getvalue().splitlines() == expected[1]


def test_the_limit_of_learned_positions_is_in_the_files_and_is_reported(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", small(positions="learned", max_positions=7))
    exported = export(run, "onnx", tmp_path / "out")
    translator = example(tmp_path / "out").Translator(tmp_path / "out")
    for session in (translator.encoder, translator.decoder):
        assert session.get_modelmeta().custom_metadata_map["longest"] == "7"
    assert any("reads and writes at most 7 tokens" in remark for remark in exported.remarks)


def test_a_search_that_the_example_does_not_make_is_reported(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", small(), num_beams=4, no_repeat_ngram=3, autocast="bf16")
    said = " ".join(export(run, "onnx", tmp_path / "out").remarks)
    assert 'decoding.method = "beam", translate.py not' in said
    assert "decoding.no_repeat_ngram = 3, translate.py without" in said
    assert 'decoding.autocast = "bf16"; this is float32' in said


@pytest.mark.parametrize("model", ["transformer", "recurrent", "none"])
def test_a_forbidden_unknown_token_is_not_written(tmp_path: Path, model: str) -> None:
    said = {}
    for unknown in ("keep", "forbid"):
        limits = {"unknown": unknown, "max_len_a": 0.5, "max_len_b": 9}
        folder = tmp_path / unknown
        run = run_of(folder, MODELS[model], WORDS, method="greedy", **limits)
        export(leaning(run, UNKNOWN, 9.0), "onnx", folder / "out")
        expected = written(run, TEXTS)
        assert translated(folder / "out", "".join(f"{text}\n" for text in TEXTS)) == expected
        said[unknown] = expected[0].split()
    assert "<unk>" in said["keep"]
    assert "<unk>" not in said["forbid"]


def test_that_the_example_replaces_no_unknown_token_is_reported(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", small(), method="greedy", unknown="replace")
    said = " ".join(export(run, "onnx", tmp_path / "out").remarks)
    assert "a word of the source for an unknown token (decoding.unknown), translate.py does" in said


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("example")
    export(run_of(path / "run", MODELS["none"], SUBWORDS), "onnx", path / "out")
    return path / "out"


@given(text=st.text(st.characters(codec="utf-8"), max_size=40))
def test_it_reads_subwords_as_attlas_does(folder: Path, text: str) -> None:
    assert example(folder).vocabulary(folder, "source").encode(text) == SUBWORDS.source.encode(text)


@given(data=st.data())
def test_it_writes_subwords_as_attlas_does(folder: Path, data: st.DataObject) -> None:
    # The first ids are bytes: most strings of them are no characters.
    id_ = st.integers(4, 259) | st.integers(0, len(SUBWORDS.target) - 1)
    ids = data.draw(st.lists(id_, max_size=12))
    assert example(folder).vocabulary(folder, "target").decode(ids) == SUBWORDS.target.decode(ids)


def test_an_export_without_vocabularies_is_reported_by_name(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"has neither source\.\* nor tokenizer\.\*"):
        example(folder).vocabulary(tmp_path, "source")


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    both = Characters("abc \ufeff")
    run = run_of(tmp_path / "run", small(), Vocabularies(both, both), method="greedy")
    export(run, "onnx", tmp_path / "out")
    reported = translated(tmp_path / "out", "\ufeffabc\n\ufeffabc\n")
    assert reported == translated(tmp_path / "out", "abc\n\ufeffabc\n")
    assert reported == written(run, ["abc", "\ufeffabc"])


def test_bytes_that_are_not_utf8_are_reported_with_their_line_after_the_lines_before(
    folder: Path,
) -> None:
    texts = b"The 3th house\n" * 3 + b"two \xff words\nmore\n"
    done = subprocess.run(
        [sys.executable, "-c", ALONE, folder / "translate.py"], input=texts, capture_output=True
    )
    assert done.returncode == 1
    assert done.stdout.decode() == translated(folder, "The 3th house\n" * 3)[0]
    assert done.stderr.decode().splitlines()[-1] == "line 4 is not UTF-8: byte 0xff at byte 5"


@pytest.mark.parametrize("form", ["nfc", "nfkc"])
def test_a_text_is_read_in_the_form_in_which_attlas_reads_it(tmp_path: Path, form: str) -> None:
    texts = [f"the café {n} of Åsa, Tiếng Việt, 한국어 fi" for n in range(60)]
    for kind in ("bpe", "characters"):
        config = VocabularyConfig.model_validate({"kind": kind, "size": 400, "normalization": form})
        one = build_vocabulary(config, texts, "vocabulary")
        run = run_of(tmp_path / f"{kind} run", small(), Vocabularies(one, one))
        export(run, "onnx", tmp_path / kind)
        read = example(tmp_path / kind).Translator(tmp_path / kind).source
        for text in (*texts[:3], "ﬁ Ａ a\u0323\u0302\u0301 ▁\u0301", "\u1112\u1161\u11ab"):
            for written in (text, unicodedata.normalize("NFD", text)):
                assert read.encode(written) == one.encode(written)
        if kind == "bpe":
            export(
                run_of(tmp_path / "post", small(norm="post"), Vocabularies(one, one)),
                "huggingface",
                tmp_path / "marian",
            )
            tokenizer = MarianTokenizer.from_pretrained(tmp_path / "marian")
            for text in texts[:3]:
                expected = [*one.encode(text), END]
                assert tokenizer(unicodedata.normalize("NFD", text))["input_ids"] == expected


@pytest.mark.parametrize("name", ["encoder.onnx", "decoder.onnx", "source.json", "attlas.json"])
def test_a_folder_with_a_damaged_file_is_refused(tmp_path: Path, name: str) -> None:
    folder = export(run_of(tmp_path / "run", small()), "onnx", tmp_path / "out").path
    example(folder).check(folder)
    content = (folder / name).read_bytes()
    changed = content[:-9] if name == "attlas.json" else content.replace(content[-40:-39], b"~")
    (folder / name).write_bytes(changed)
    with pytest.raises(SystemExit, match=rf"{name}.*: export again$"):
        example(folder).check(folder)
    (folder / name).unlink()
    with pytest.raises(SystemExit, match=rf"no .*{name}: take the whole folder"):
        example(folder).check(folder)

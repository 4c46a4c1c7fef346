"""`attlas evaluate`: no number stands alone."""

import json
import os
import shutil
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attlas.cli.main import app
from attlas.config import read_toml, write_toml
from attlas.data import FilesData
from attlas.data.vocabulary import ListVocabulary
from attlas.decoding import DecodingConfig
from attlas.inference import Translator
from attlas.metrics import corpus_score
from attlas.runs import Run
from attlas.training import Recipe, train
from attlas.training.setup import code_version
from attlas.training.validation import exactly_right
from support.command_line import called


def evaluate(*arguments: object) -> tuple[int, str, str]:
    return called("evaluate", *arguments)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    source, reference = tmp_path / "source", tmp_path / "reference"
    source.write_text("1 2 3\n\n4 5\n", encoding="utf-8")
    reference.write_text("3 2 1\n\n5 4\n", encoding="utf-8")
    return source, reference


def test_the_scores_are_those_of_the_translations_that_are_kept(
    run: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    source, reference = files
    code, out, _ = evaluate(
        run, "--source", source, "--reference", reference, "--json", "-o", tmp_path / "kept"
    )
    assert code == 0
    kept = (tmp_path / "kept").read_text(encoding="utf-8").split("\n")[:-1]
    expected = corpus_score([kept[0], kept[2]], ["3 2 1", "5 4"])  # the second line is empty
    report = json.loads(out)
    assert report["scores"] == {
        score.name: {"value": score.value, "signature": score.signature} for score in expected
    }
    assert (report["data"]["pairs"], len(kept)) == (2, 3)


def test_the_report_names_data_search_checkpoint_and_seed(run: Path) -> None:
    _, out, _ = evaluate(run, "--json", "--num-beams", 3)
    report, provenance = json.loads(out), Run(run).provenance()
    assert report["data"]["sha256"] == provenance["data"]["test"]["sha256"]
    assert report["data"]["pairs"] == provenance["data"]["test"]["pairs"]
    assert report["decoding"]["num_beams"] == 3
    assert report["checkpoint"] == "00000003"
    assert report["seed"] == provenance["seed"]


def test_the_report_names_the_attlas_that_trained_and_the_one_that_evaluated(
    run: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(run, tmp_path / "older"))
    facts = {**Run(run).provenance(), "attlas": "0.0.9", "commit": "a" * 40}
    (other / "provenance.json").write_text(json.dumps(facts), encoding="utf-8")
    report, now = json.loads(evaluate(other, "--json")[1]), code_version()
    assert (report["attlas"], report["commit"]) == ("0.0.9", "a" * 40)
    assert report["evaluated"] == now
    assert now["attlas"] == version("attlas")
    reported = evaluate(other)[1]
    assert f"attlas 0.0.9, torch {report['torch']}, commit {'a' * 40}" in reported
    assert f"evaluated by: attlas {now['attlas']}, commit {now['commit']}" in reported


def test_the_report_for_a_reader_says_the_same(run: Path) -> None:
    report = json.loads(evaluate(run, "--json")[1])
    _, out, _ = evaluate(run)
    for name, score in report["scores"].items():
        assert f"{name} = {score['value']:.2f} ({score['signature']})" in out
    assert report["data"]["sha256"] in out
    assert "method = beam, num_beams = 2" in out
    assert "temperature" not in out


def test_the_validation_set_is_another_set(run: Path) -> None:
    report = json.loads(evaluate(run, "--valid", "--json")[1])
    assert report["data"]["sha256"] == Run(run).provenance()["data"]["valid"]["sha256"]


def test_the_tokenizer_of_bleu_is_the_one_asked_for_else_that_of_the_run(
    run: Path, tmp_path: Path
) -> None:
    def signature(folder: Path, *more: str) -> str:
        return str(json.loads(evaluate(folder, "--json", *more)[1])["scores"]["BLEU"]["signature"])

    assert "tok:13a" in signature(run)
    assert "tok:char" in signature(run, "--bleu-tokenizer", "char")
    other = Path(shutil.copytree(run, tmp_path / "zh"))
    text = (other / "config.toml").read_text("utf-8")
    assert 'bleu_tokenizer = "13a"' in text
    changed = text.replace('bleu_tokenizer = "13a"', 'bleu_tokenizer = "zh"')
    (other / "config.toml").write_text(changed, "utf-8")
    assert "tok:zh" in signature(other)
    assert "tok:13a" in signature(other, "--bleu-tokenizer", "13a")
    code, _, error = evaluate(run, "--bleu-tokenizer", "words")
    assert code == 2
    assert "use one of: 13a, intl, char, zh" in error


def test_unequal_files_are_the_callers_mistake(run: Path, files: tuple[Path, Path]) -> None:
    source, reference = files
    source.write_text("1\n", encoding="utf-8")
    code, _, error = evaluate(run, "--source", source, "--reference", reference)
    assert code == 2
    assert "expected two files with the same number of lines; got 1 in" in error


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--source",), "got --source without --reference; name --reference too, or leave out"),
        (("--reference",), "got --reference without --source; name --source too, or leave out"),
        (
            ("--source", "--valid"),
            "got --source and --valid without --reference; leave out --valid",
        ),
        (
            ("--source", "--reference", "--valid"),
            "got --source and --reference and --valid; leave out --valid, or --source and",
        ),
    ],
)
def test_a_source_needs_its_reference(
    run: Path, files: tuple[Path, Path], options: tuple[str, ...], said: str
) -> None:
    named = {"--source": [files[0]], "--reference": [files[1]]}
    code, _, error = evaluate(run, *(part for o in options for part in (o, *named.get(o, []))))
    assert code == 2
    assert "expected --source and --reference" in error
    assert said in error


def test_the_standard_input_is_read_once(run: Path, files: tuple[Path, Path]) -> None:
    given = ["--source", "-", "--reference", files[1], "--reference", "-"]
    code, out, error = called("evaluate", run, *given, text="1\n")
    assert (code, out) == (2, "")
    assert "expected one use of the standard input; got 2 uses" in error
    code, out, error = called("compare", run, run, "--source", "-", "--reference", files[1])
    assert (code, out) == (2, "")
    assert "expected one use of the standard input; got 2 uses" in error


def test_a_test_set_that_is_gone_is_reported_with_the_options_that_name_another(
    run: Path, tmp_path: Path
) -> None:
    copied = shutil.copytree(run, tmp_path / "copy")
    data = {"kind": "files", "train": "t", "valid": "v", "test": "gone.tsv", "origin": "the attic"}
    tables = read_toml(copied / "config.toml") | {"data": data}
    (copied / "config.toml").write_text(write_toml(tables), encoding="utf-8")
    code, _, error = evaluate(copied)
    assert code == 2
    assert "got no file at gone.tsv; put it back there, or name --source and --reference" in error


def test_examples_are_exactly_right(run: Path, tmp_path: Path) -> None:
    """References made of the run's own translations are all right."""
    source = tmp_path / "source"
    source.write_text("1 2 3\n4 5\n6\n", encoding="utf-8")
    reference = tmp_path / "reference"
    least = ["--set", "decoding.min_length=1"]  # no empty one
    called("translate", run, "-i", source, "-o", reference, *least)
    both = ("--source", source, "--reference", reference)
    code, out, _ = evaluate(run, *both, "--examples", 2, *least)
    assert code == 0
    assert out.count("→") == 2
    assert "exactly right: 100.0%" in out
    assert "2 of the 3 that are exactly right:" in out


def test_the_token_accuracy_is_that_of_the_tokens_of_the_run(
    run: Path, files: tuple[Path, Path]
) -> None:
    source, reference = files
    CliRunner().invoke(app, ["translate", str(run), "-i", str(source), "-o", str(reference)])
    both = ("--source", source, "--reference", reference)
    assert json.loads(evaluate(run, *both, "--json")[1])["token_accuracy"] == 1.0
    assert "token accuracy: 100.0%" in evaluate(run, *both)[1]
    longer = "".join(f"{line} 8\n" for line in reference.read_text("utf-8").split("\n")[:-1])
    reference.write_text(longer, encoding="utf-8")
    assert json.loads(evaluate(run, *both, "--json")[1])["token_accuracy"] < 1.0


def test_a_run_whose_training_data_is_gone_is_evaluated_all_the_same(piped: Path) -> None:
    code, out, error = evaluate(piped, "--valid", "--json")
    assert code == 0, error
    assert json.loads(out)["data"]["pairs"] == 4
    assert "has changed" not in error


def test_a_run_without_a_test_set_says_what_to_do(piped: Path) -> None:
    code, _, error = evaluate(piped)
    assert code == 2
    assert f"expected a test set of {piped}; got a run whose recipe has none (data.test)" in error
    assert "give one with --source TEXTS --reference TRANSLATIONS" in error
    assert "take the validation set with --valid" in error


def test_sources_that_were_cut_and_translations_that_did_not_end_are_reported_apart(
    run: Path, files: tuple[Path, Path]
) -> None:
    both = ("--source", files[0], "--reference", files[1])
    _, _, error = evaluate(run, *both, "--set", "decoding.max_source_length=2")
    assert "attlas: 1 of 3 sources: not read to the end, being longer than this" in error
    assert "cut off" not in error
    short = {"method": "sample", "max_len_a": 0, "max_len_b": 1, "seed": 1}
    settings = [
        part for key, value in short.items() for part in ("--set", f"decoding.{key}={value}")
    ]
    _, _, error = evaluate(run, *both, *settings)
    translator = Translator(run, DecodingConfig.read(short, "the test"))
    unended = sum(not translator(text).finished for text in ("1 2 3", "", "4 5"))
    assert unended
    assert f"attlas: {unended} of 3 sources: cut off at the longest translation" in error
    assert "not read to the end" not in error


def test_one_reference_file_twice_is_an_error(run: Path, files: tuple[Path, Path]) -> None:
    link = files[1].with_name("link")
    link.symlink_to(files[1])
    for again in (files[1], f"{files[1].parent}/./{files[1].name}", link):
        both = ("--reference", files[1], "--reference", again)
        code, _, error = evaluate(run, "--source", files[0], *both)
        assert code == 2
        assert f"expected --reference files that differ; got {again} twice; name each once" in error


def test_sources_of_which_no_word_is_known_are_counted(run: Path, files: tuple[Path, Path]) -> None:
    files[0].write_text("1 2 3\n\nПривет\n", encoding="utf-8")
    _, _, error = evaluate(run, "--source", files[0], "--reference", files[1])
    said = "no word of them is in the vocabulary, so their translations say nothing"
    assert f"attlas: 1 of 3 sources: {said}\n" in error


def test_sources_beyond_learned_positions_are_reported_as_such(
    recipe: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    tables = read_toml(recipe)
    tables["model"] = {
        "kind": "transformer", "embed_dim": 8, "num_heads": 2, "ffn_dim": 8, "encoder_layers": 1,
        "decoder_layers": 1, "positions": "learned", "max_positions": 8,
    }  # fmt: skip
    folder = train(Recipe.read(tables, "the test"), tmp_path / "learned").path
    files[0].write_text("1 2 3 4 5 6 7\n1 2 3 4 5 6 7 0\n1\n", encoding="utf-8")
    code, _, error = evaluate(folder, "--source", files[0], "--reference", files[1])
    assert code == 0
    said = "not read to the end, being longer than this model is set to read"
    assert f"attlas: 1 of 3 sources: {said}\n" in error
    assert "max_source_length" not in error


def test_a_translation_that_did_not_end_is_not_exactly_right_whatever_its_text(run: Path) -> None:
    short = {"method": "sample", "max_len_a": 0, "max_len_b": 1}
    texts = ["1 2 3", "", "4 5", "6 7 1", "0"]
    translator = Translator(run, DecodingConfig.read(short, "the test"))
    found = list(translator.stream(texts))
    finished = [one.finished for one in found]
    vocabulary = translator.vocabularies.target
    expected = [vocabulary.encode(one.text) for one in found]
    assert exactly_right(found, expected, vocabulary) == finished
    assert len(set(finished)) == 2  # and the empty text has its empty translation
    longer = [vocabulary.encode(f"{one.text} 1") for one in found]
    assert not any(exactly_right(found, longer, vocabulary))


def test_where_nothing_is_right_the_first_examples_come_with_their_references(
    run: Path, files: tuple[Path, Path]
) -> None:
    source, reference = files
    source.write_text("1 2 3\n6\n4 5\n", encoding="utf-8")
    reference.write_text("never\nso\nat all\n", encoding="utf-8")
    both = ("--source", source, "--reference", reference, "--examples", 2)
    _, out, _ = evaluate(run, *both)
    first = Translator(run)("1 2 3").text
    assert "no translation is exactly right; the first ones are:" in out
    assert f"  1 2 3\n  → {first}\n  reference: never\n" in out
    assert out.count("reference: ") == 2
    assert "at all" not in out
    assert json.loads(evaluate(run, *both, "--json")[1])["examples"] == []


def test_the_search_is_reported_by_what_differs_from_the_defaults(run: Path) -> None:
    def search(*more: str) -> str:
        return next(x for x in evaluate(run, *more)[1].splitlines() if x.startswith("search: "))

    own = "max_len_a = 1.0, max_len_b = 5"
    assert search() == f"search: method = beam, num_beams = 2, {own}"
    assert search("--num-beams", "5") == f"search: method = beam, num_beams = 5, {own}"
    assert search("--set", "decoding.method=greedy") == f"search: method = greedy, {own}"


@pytest.mark.parametrize("other", ["source", "reference", "link"])
def test_what_is_evaluated_is_not_written_over(
    run: Path, files: tuple[Path, Path], tmp_path: Path, other: str
) -> None:
    source, reference = files
    (tmp_path / "link").hardlink_to(reference)
    before = source.read_bytes(), reference.read_bytes()
    both = ("--source", source, "--reference", reference)
    code, out, error = evaluate(run, *both, "-o", tmp_path / "." / other)
    assert (code, out) == (2, "")
    assert "expected different files to read and to write" in error
    assert (source.read_bytes(), reference.read_bytes()) == before


def test_the_data_of_a_run_is_not_written_over(piped: Path) -> None:
    valid = piped.parent / "valid.tsv"
    before = valid.read_bytes()
    code, _, error = evaluate(piped, "--valid", "-o", valid)
    assert code == 2
    assert f"got {valid} twice" in error
    assert valid.read_bytes() == before


def test_a_text_may_be_its_own_reference(run: Path, files: tuple[Path, Path]) -> None:
    code, _, error = evaluate(run, "--source", files[0], "--reference", files[0])
    assert code == 0, error


def test_a_single_pair_is_one_pair(run: Path, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1 2\n", encoding="utf-8")
    _, out, _ = evaluate(run, "--source", tmp_path / "one", "--reference", tmp_path / "one")
    assert ", 1 pair, sha256" in out


def test_a_folder_where_the_translations_should_go_is_reported_before_any_work(
    run: Path, tmp_path: Path
) -> None:
    code, out, error = evaluate(run, "-o", f"{tmp_path}/")
    assert (code, out) == (2, "")
    assert (
        error == f"attlas: expected to write {tmp_path}; got a folder of that name; name a file\n"
    )


def test_the_translations_are_kept_where_their_scoring_fails(
    run: Path, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("attlas.jobs.evaluation.corpus_score", broken)
    both = ("--source", files[0], "--reference", files[1])
    code, out, error = evaluate(run, *both, "-o", tmp_path / "kept")
    assert (code, out) == (1, "")
    assert "RuntimeError: a bug" in error
    assert (tmp_path / "kept").read_text("utf-8") == called("translate", run, "-i", files[0])[1]


def test_a_reference_is_divided_into_tokens_once(
    run: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    divided, real = [], ListVocabulary.encode

    def encode(self: ListVocabulary, text: str) -> list[int]:
        divided.append(text)
        return real(self, text)

    references = ["never", "so", "at all"]
    files[0].write_text("1 2 3\n6\n4 5\n", encoding="utf-8")
    files[1].write_text("".join(f"{one}\n" for one in references), encoding="utf-8")
    monkeypatch.setattr(ListVocabulary, "encode", encode)
    both = ("--source", files[0], "--reference", files[1])
    assert evaluate(run, *both, "--examples", 2)[0] == 0
    assert [divided.count(one) for one in references] == [1, 1, 1]


@pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="no /dev/full, a disk that is always full"
)
def test_a_full_disk_takes_no_scores_away(
    run: Path, labelling: Path, files: tuple[Path, Path]
) -> None:
    for command in ((run, "--source", files[0], "--reference", files[1]), (labelling, "--valid")):
        code, out, error = evaluate(*command, "-o", "/dev/full")
        assert code == 2
        assert "No space left on device" in error
        assert out == evaluate(*command)[1]


def test_scores_as_json_and_translations_do_not_share_the_standard_output(run: Path) -> None:
    code, out, error = called("evaluate", run, "--json", "-o", "-")
    assert (code, out) == (2, "")
    assert "name a file for -o" in error


def test_a_table_of_settings_is_no_setting(run: Path) -> None:
    code, _, error = called("evaluate", run, "--set", "decoding=greedy")
    assert code == 2
    assert "got decoding='greedy'; name the setting behind a dot" in error


def test_the_report_names_the_checkpoint_that_was_scored(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Run(run).store
    before = store.named("best")
    other = next(name for name in store.names() if name != before)
    whole = Translator.stream

    def meanwhile(self, *given, **named):
        Run(run).store.point("best", other)
        return whole(self, *given, **named)

    monkeypatch.setattr(Translator, "stream", meanwhile)
    monkeypatch.setattr(Translator, "forked", lambda self: nullcontext(self))
    try:
        code, out, _ = called("evaluate", run, "--json")
    finally:
        store.point("best", before)
    assert code == 0
    assert json.loads(out)["checkpoint"] == before


def test_several_references_are_scored_as_sacrebleu_scores_them(
    run: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    import sacrebleu

    source, reference = files
    kept, other = tmp_path / "kept", tmp_path / "other"
    other.write_text("1 2 3\n\n7 7\n", encoding="utf-8")
    both = ("--reference", reference, "--reference", other)
    code, out, error = evaluate(run, "--source", source, *both, "--json", "-o", kept)
    assert code == 0, error
    texts = kept.read_text(encoding="utf-8").split("\n")[:-1]
    texts, references = [texts[0], texts[2]], [["3 2 1", "5 4"], ["1 2 3", "7 7"]]
    report = json.loads(out)
    for metric in (sacrebleu.BLEU(), sacrebleu.CHRF(), sacrebleu.TER()):
        expected = metric.corpus_score(texts, references)
        found = report["scores"][expected.name]
        assert found["value"] == pytest.approx(expected.score)
        assert "nrefs:2" in str(metric.get_signature())
    assert report["data"]["references"] == 2
    assert str(other) in report["data"]["name"]


def test_a_line_with_an_empty_side_is_translated_and_not_scored(run: Path, tmp_path: Path) -> None:
    source, reference = tmp_path / "source", tmp_path / "reference"
    source.write_text("1 2 3\n4 5\n \n6\n\n", encoding="utf-8")
    reference.write_text("3 2 1\n\n1\n6\n\n", encoding="utf-8")
    kept = tmp_path / "kept"
    both = ("--source", source, "--reference", reference)
    code, out, error = evaluate(run, *both, "--json", "-o", kept)
    assert code == 0
    name = f"{source} and {reference}"
    assert f"attlas: 1 of 5 lines of {name}: not scored, having no reference" in error
    assert f"attlas: 2 of 5 lines of {name}: not scored, having an empty source" in error
    texts = kept.read_text(encoding="utf-8").split("\n")[:-1]
    assert len(texts) == 5
    report, expected = json.loads(out), corpus_score([texts[0], texts[3]], ["3 2 1", "6"])
    assert {s.name: s.value for s in expected} == {
        name: score["value"] for name, score in report["scores"].items()
    }
    assert report["data"]["pairs"] == 2


@pytest.mark.parametrize("empty", ["", "  "])
def test_the_files_of_a_test_set_are_scored_as_the_test_set_itself(
    run: Path, tmp_path: Path, empty: str
) -> None:
    pairs = [("1 2 3", "3 2 1"), (empty, "1"), ("4 5", empty), (empty, empty), ("6", "6")]
    sides = tmp_path / "source", tmp_path / "reference"
    for side, texts in zip(sides, zip(*pairs, strict=True), strict=True):
        side.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    split = tmp_path / "test.tsv"
    split.write_text("".join(f"{one}\t{other}\n" for one, other in pairs), encoding="utf-8")
    given = json.loads(evaluate(run, "--source", sides[0], "--reference", sides[1], "--json")[1])
    table = {"train": str(split), "valid": str(split), "test": str(split)}
    corpus = FilesData.read(table, "the test").corpus("test")
    assert given["data"]["sha256"] == corpus.checksum
    assert given["data"]["pairs"] == len(corpus) == 2


def test_references_without_spaces_hint_at_the_tokenizer(run: Path, tmp_path: Path) -> None:
    source, reference = tmp_path / "source", tmp_path / "reference"
    source.write_text("1 2 3\n4 5\n", encoding="utf-8")
    reference.write_text("ฉันชอบแมวมาก\nฉันชอบหมามาก\n", encoding="utf-8")
    both = ("--source", source, "--reference", reference)
    assert "add --bleu-tokenizer char" in evaluate(run, *both)[2]
    assert "--bleu-tokenizer" not in evaluate(run, *both, "--bleu-tokenizer", "char")[2]

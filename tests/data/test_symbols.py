"""Symbols that somebody defines are one token each, and come back."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import Characters, Pair, Subwords, VocabularyConfig, build_vocabularies
from attlas.data.vocabularies import Vocabularies
from attlas.errors import AttlasError

SYMBOLS = ("<num>", "__URL__", "<n>", "{}", "ß", "<num>2", "a,b")
TEXTS = ["the cat sat on 12 mats", "see https://x.y now", "numbers num n u m < >"]
KINDS = ("bpe", "unigram", "words", "characters")
RUNS = st.lists(st.sampled_from([*SYMBOLS, "the", " ", "cat", "<", "num", ">", "é", "▁"]))


def built(kind: str) -> Vocabularies:
    config = VocabularyConfig.read(
        {"kind": kind, "size": 400, "user_defined_symbols": list(SYMBOLS)}, "the test"
    )
    return build_vocabularies(config, [Pair(text, text) for text in TEXTS])


@pytest.fixture(scope="module", params=KINDS)
def vocabularies(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("vocabularies")
    built(request.param).save(folder)
    return Vocabularies.load(folder)


def test_each_symbol_is_one_token_though_no_text_has_it(vocabularies: Vocabularies) -> None:
    vocabulary = vocabularies.source
    for symbol in SYMBOLS:
        ids = vocabulary.encode(f"cat {symbol} sat")
        assert symbol in vocabulary.pieces(ids)
        assert vocabulary.decode(ids) == f"cat {symbol} sat" or isinstance(vocabulary, Characters)
        assert symbol in vocabulary.decode(ids)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@given(runs=RUNS)
def test_text_with_symbols_comes_back_and_is_divided_at_the_longest(
    kind: str, runs: list[str]
) -> None:
    vocabulary = SUBWORDS[kind]
    text = "".join(runs)
    ids = vocabulary.encode(text)
    assert vocabulary.decode(ids) == text
    drawn = vocabulary.sample([text] * 3, 0.4, "seed")
    found, left = [], text  # by hand: at each place the longest that begins there
    while left:
        longest = max((s for s in SYMBOLS if left.startswith(s)), key=len, default="")
        if longest:
            found.append(longest)
        left = left[len(longest) or 1 :]
    for own in (ids, *drawn):
        assert vocabulary.decode(own) == text
        assert [piece for piece in vocabulary.pieces(own) if piece in SYMBOLS] == found


SUBWORDS: dict[str, Subwords] = {}
for _kind in ("bpe", "unigram"):
    _built = built(_kind).source
    assert isinstance(_built, Subwords)
    SUBWORDS[_kind] = _built


def test_sampling_is_of_the_kind_of_the_model_with_symbols_too() -> None:
    for kind, vocabulary in SUBWORDS.items():
        assert type(vocabulary._segmenter).__name__ == {"bpe": "Merges", "unigram": "Lattice"}[kind]
        assert vocabulary.symbols == SYMBOLS


def test_characters_of_the_exports_example_are_divided_alike(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from attlas.export.onnx.templates.classify import Listed as OfClassifier
    from attlas.export.onnx.templates.translate import Listed

    vocabulary = built("characters").source
    vocabulary.save(tmp_path / "tokenizer.json")
    theirs = Listed(tmp_path / "tokenizer.json")
    reading = OfClassifier(tmp_path / "tokenizer.json")
    for text in ("the <num>2 <num>", "<n>um> a,b ß{}", "cat"):
        assert theirs.encode(text) == reading.encode(text) == vocabulary.encode(text)
        assert theirs.decode(theirs.encode(text)) == vocabulary.decode(vocabulary.encode(text))


@pytest.mark.parametrize(
    ("symbol", "why"),
    [
        ("", "is empty"),
        ("a b", "holds white space"),
        ("</s>", "is the name of another token"),
        ("<0x41>", "is the name of another token"),
        ("x▁y", "sentencepiece keeps to itself"),
        ("e\u0301", "is not in the form NFC"),
    ],
)
def test_what_can_be_no_symbol_is_refused(symbol: str, why: str) -> None:
    table = {"user_defined_symbols": [symbol], "normalization": "nfc"}
    with pytest.raises(AttlasError, match=why):
        VocabularyConfig.read(table, "the test")
    with pytest.raises(AttlasError, match="is there twice"):
        VocabularyConfig.read({"user_defined_symbols": ["<a>", "<a>"]}, "the test")


def test_more_symbols_than_ids_are_an_error() -> None:
    symbols = [f"<{number}>" for number in range(60)]
    for kind in KINDS:
        config = VocabularyConfig.read(
            {"kind": kind, "size": 50, "user_defined_symbols": symbols}, "the test"
        )
        with pytest.raises(AttlasError, match=r"vocabulary\.size = 50"):
            build_vocabularies(config, [Pair("a b", "a b")])

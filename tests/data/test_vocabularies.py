import re

import pytest

from attlas.data import (
    Characters,
    Pair,
    Subwords,
    Vocabularies,
    VocabularyConfig,
    Words,
    build_vocabularies,
    load_vocabulary,
)
from attlas.errors import AttlasError

PAIRS = [Pair("the old dog", "der alte Hund"), Pair("the new cat", "die neue Katze")] * 5
KINDS = {"bpe": Subwords, "unigram": Subwords, "words": Words, "characters": Characters}


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_is_saved_is_loaded_as_it_was(tmp_path, kind, shared):
    built = build_vocabularies(VocabularyConfig(kind=kind, size=320, shared=shared), PAIRS)
    built.save(tmp_path / "run")
    suffix = "model" if KINDS[kind] is Subwords else "json"
    names = [f"tokenizer.{suffix}"] if shared else [f"source.{suffix}", f"target.{suffix}"]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == names
    loaded = Vocabularies.load(tmp_path / "run")
    assert built.shared == loaded.shared == shared
    for ours, theirs in ((built.source, loaded.source), (built.target, loaded.target)):
        assert type(theirs) is KINDS[kind]
        assert len(ours) == len(theirs)
        assert ours.encode("der old Katze") == theirs.encode("der old Katze")
        assert ours.pieces(range(len(ours))) == theirs.pieces(range(len(theirs)))


def test_joint_knows_both_languages_and_separate_each_its_own():
    shared = build_vocabularies(VocabularyConfig(kind="words"), PAIRS)
    assert shared.source.decode(shared.source.encode("the Hund")) == "the Hund"
    separate = build_vocabularies(VocabularyConfig(kind="words", shared=False), PAIRS)
    assert separate.source.decode(separate.source.encode("the Hund")) == "the <unk>"
    assert separate.target.decode(separate.target.encode("der Hund")) == "der Hund"


def test_saving_again_leaves_nothing_of_the_vocabularies_before(tmp_path):
    for kind, shared in (("words", False), ("bpe", True), ("characters", True)):
        build_vocabularies(VocabularyConfig(kind=kind, shared=shared), PAIRS).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tokenizer.json"]
    assert isinstance(Vocabularies.load(tmp_path).source, Characters)


def test_a_folder_without_vocabularies_says_what_is_missing(tmp_path):
    with pytest.raises(AttlasError, match=r"tokenizer\.\*, or source\.\* and target.*got neither"):
        Vocabularies.load(tmp_path)
    Words(["a"]).save(tmp_path / "source.json")
    with pytest.raises(AttlasError, match=r"got source\.json alone"):
        Vocabularies.load(tmp_path)


@pytest.mark.parametrize(
    "content", ["", "[]", "[" * 99_999, '{"kind": "words"}', '{"kind": "syllables", "tokens": []}']
)
def test_a_damaged_list_is_an_error_that_names_the_file(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(AttlasError, match=r"tokenizer\.json, which is damaged"):
        Vocabularies.load(tmp_path)


def test_a_missing_or_unknown_file_is_an_error(tmp_path):
    with pytest.raises(AttlasError, match=r"a vocabulary at .*no\.model"):
        load_vocabulary(tmp_path / "no.model")
    with pytest.raises(AttlasError, match=r"ending in \.model or \.json"):
        load_vocabulary(tmp_path / "no.txt")
    with pytest.raises(AttlasError, match=r"a vocabulary at .*; got .*null"):
        load_vocabulary(tmp_path / "a\0b.model")


def test_more_ids_than_four_bytes_tell_apart_are_an_error():
    with pytest.raises(AttlasError, match=r"2,147,483,647; .* \(a\.toml\); got 2147483648"):
        VocabularyConfig.read({"size": 2**31}, "a.toml")
    assert VocabularyConfig(size=2**31 - 1).size == 2**31 - 1


def test_sampling_needs_subwords():
    with pytest.raises(AttlasError, match=r'"bpe" or "unigram".*got kind = "words"'):
        VocabularyConfig.read({"kind": "words", "sampling": 0.1}, "recipe.toml")


@pytest.mark.parametrize("size", [0, 4, 2**31, -1])
def test_a_size_that_no_vocabulary_has_is_reported_with_those_that_are_possible(size: int) -> None:
    with pytest.raises(AttlasError, match=r"vocabulary\.size from 5 to 2,147,483,647") as caught:
        VocabularyConfig.read({"size": size}, "here")
    assert caught.value.got == str(size)
    assert VocabularyConfig(size=5).size == 5
    assert VocabularyConfig(size=2**31 - 1).size == 2**31 - 1


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_least_vocabulary_of_subwords_that_is_reported_is_one_that_can_be_built(
    kind: str,
) -> None:
    pairs = [Pair("ein Hund und ein Hut", "a dog and a hat")] * 30
    with pytest.raises(AttlasError, match=r"at least (\d+) ids .* at most 2,147,483,647") as caught:
        build_vocabularies(VocabularyConfig(kind=kind, size=100), pairs)
    least = int(re.search(r"at least (\d+)", caught.value.expected)[1])
    texts = "".join(pair.source + pair.target for pair in pairs)
    assert least == 4 + 256 + len(set(texts))  # a space is one of them
    assert len(build_vocabularies(VocabularyConfig(kind=kind, size=least), pairs).source) == least

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import BEGIN, END, PAD, UNKNOWN, Characters, Words
from attlas.data.vocabulary import load_list_vocabulary
from attlas.errors import AttlasError


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1).filter(any))
def test_characters_give_back_every_text_they_were_built_from(texts):
    vocabulary = Characters.built(texts, 10_000)
    for text in texts:
        ids = vocabulary.encode(text)
        assert vocabulary.decode([BEGIN, *ids, END, PAD]) == text
        assert len(vocabulary.pieces(ids)) == len(text)


@given(st.lists(st.lists(st.text("abc", min_size=1)), min_size=1).filter(any))
def test_words_give_back_every_text_they_were_built_from(sentences):
    texts = [" ".join(words) for words in sentences]
    vocabulary = Words.built(texts, 10_000)
    assert [vocabulary.decode(vocabulary.encode(text)) for text in texts] == texts


def test_the_most_frequent_are_kept_and_ties_go_by_the_alphabet():
    vocabulary = Words.built(["c b a b", "d b c"], 7)
    assert vocabulary.tokens == ("b", "c", "a")
    assert len(vocabulary) == 7
    assert vocabulary.encode("a b c d") == [6, 4, 5, UNKNOWN]
    assert vocabulary.decode([6, UNKNOWN]) == "a <unk>"


def test_what_is_unknown_is_shown_and_not_dropped():
    vocabulary = Characters.built(["ab"], 10)
    assert vocabulary.decode(vocabulary.encode("axb")) == "a\N{REPLACEMENT CHARACTER}b"
    assert vocabulary.pieces(vocabulary.encode("xa")) == ["<unk>", "a"]


def test_an_unknown_token_of_a_text_at_hand_is_shown_as_it_stands_there():
    words = Words.built(["the cat"], 10)
    assert words.pieces_of(" the  dog <unk> cat") == ["the", "<unk:dog>", "<unk:<unk>>", "cat"]
    assert Characters.built(["a b"], 10).pieces_of("a é") == ["a", "␣", "<unk:é>"]


@given(st.text(st.sampled_from("ab \u2003é")))
def test_the_pieces_of_a_text_are_those_of_its_ids_where_they_are_known(text):
    for vocabulary in (Words.built(["a b ab"], 10), Characters.built(["ab \u2003"], 10)):
        ids = vocabulary.encode(text)
        for id_, of_id, of_text in zip(
            ids, vocabulary.pieces(ids), vocabulary.pieces_of(text), strict=True
        ):
            assert of_text == of_id or (id_ == UNKNOWN and of_text.startswith("<unk:"))


def test_a_space_has_a_label_that_can_be_seen():
    vocabulary = Characters.built(["a b"], 10)
    assert vocabulary.pieces(vocabulary.encode("a b")) == ["a", "␣", "b"]


def test_words_that_look_like_special_tokens_are_words():
    vocabulary = Words.built(["<s> <unk> <pad>"], 10)
    assert min(vocabulary.encode("<s> <unk> <pad>")) > END


def test_nothing_to_build_from_is_an_error():
    with pytest.raises(AttlasError, match="text to build the source vocabulary from"):
        Words.built(["  "], 10, "source vocabulary")


def test_a_repeated_token_is_an_error():
    with pytest.raises(AttlasError, match="different tokens"):
        Words(["a", "a"])


@pytest.mark.parametrize("kind", [Words, Characters])
def test_what_was_saved_is_read_back(tmp_path, kind):
    kind.built(["a é\u2028 b", "a"], 10).save(tmp_path / "source.json")
    again = load_list_vocabulary(tmp_path / "source.json")
    assert type(again) is kind
    assert again.tokens == kind.built(["a é\u2028 b", "a"], 10).tokens


@pytest.mark.parametrize(
    "content",
    [
        *(
            f'{{"kind": "words", "tokens": {tokens}}}'
            for tokens in ("5", "null", '"abc"', '{"a": 1}', "[1]", '["a", null]')
        ),
        '{"kind": "words"}',
        '{"tokens": ["a"]}',
        '{"kind": "bytes", "tokens": ["a"]}',
        '{"kind": ["words"], "tokens": ["a"]}',
        '["a"]',
        pytest.param(f'{{"kind": "words", "tokens": {"[" * 99_999}{"]" * 99_999}}}', id="nested"),
        '{"kind": "words", "tokens": ["a"',
        "",
    ],
)
def test_a_file_that_holds_no_list_of_tokens_is_damaged(tmp_path, content):
    (tmp_path / "source.json").write_text(content)
    with pytest.raises(AttlasError, match=r"got .*source\.json, which is damaged"):
        load_list_vocabulary(tmp_path / "source.json")

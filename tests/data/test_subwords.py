import io
import json
import math
import random
import subprocess
import sys
import threading
import tracemalloc
from collections import Counter
from itertools import pairwise

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import BEGIN, END, PAD, Subwords, train_subwords
from attlas.data.subword_sampling import Lattice, Merges
from attlas.errors import AttlasError

TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "Der schnelle braune Fuchs springt über den faulen Hund.",
    "the lower, the newer, the wider; low new wide",
    "速い茶色の狐が怠け者の犬を飛び越える。",
] * 4
AWKWARD = [
    "",
    " ",
    "   ",
    " leading",
    "trailing ",
    "two  spaces",
    "▁",
    "a▁ ▁▁b ",
    "<s> </s> <unk> <pad> <0x41>",
    "😀 👩‍👩‍👧 🇩🇪",
    "犬が　いる",
    "null \0 tab \t return \r nbsp \xa0 line \u2028 feff \ufeff",
    "e\u0301 é ﬁ Ａ ½",
    "\U0010ffff\ue000▅⁇",
]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def subwords(request):
    return train_subwords(TEXTS, request.param, 420)


@pytest.mark.parametrize("text", AWKWARD)
def test_an_awkward_text_comes_back_as_it_was(subwords, text):
    assert subwords.decode(subwords.encode(text)) == text


@given(text=st.text() | st.text(st.sampled_from("the lowr ▁▅⁇<0xE2>s/\t")))
def test_any_text_comes_back_as_it_was(subwords, text):
    ids = subwords.encode(text)
    assert subwords.decode(ids) == text
    assert subwords.decode([BEGIN, *ids, END, PAD]) == text
    assert all(END < id_ < len(subwords) for id_ in ids)
    assert len(subwords.pieces(ids)) == len(ids)


@given(texts=st.lists(st.text(), max_size=5), seed=st.text(max_size=4))
def test_a_sampled_text_comes_back_as_it_was(subwords, texts, seed):
    drawn = subwords.sample(texts, 0.3, seed)
    assert [subwords.decode(ids) for ids in drawn] == texts


def test_sampling_is_a_pure_function_of_texts_strength_and_seed(subwords):
    first = subwords.sample(TEXTS, 0.2, "1 0")
    subwords.sample(TEXTS, 0.7, "something else meanwhile")
    assert subwords.sample(TEXTS, 0.2, "1 0") == first
    assert subwords.sample(TEXTS[:3], 0.2, "1 0") == first[:3]
    assert subwords.sample(TEXTS, 0.2, "1 1") != first
    assert len({tuple(ids) for ids in first[::4]}) > 1  # the same sentence, drawn anew each time


DRAWING = """
import json, sys
from attlas.data import Corpus, Pair, Vocabularies, corpus_of, sample_corpus, train_subwords
texts, epochs = json.loads(sys.argv[1])
corpus = corpus_of([Pair(text, text[::-1]) for text in texts], "texts")
drawn = {}
for kind in ("bpe", "unigram"):
    subwords = train_subwords(texts, kind, 420)
    for epoch in epochs:
        encoded = sample_corpus(corpus, Vocabularies(subwords, subwords), 0.2, 5, epoch)
    drawn[kind] = [side.ids.tolist() for side in (encoded.source, encoded.target)]
print(json.dumps(drawn))
"""


@pytest.mark.slow
def test_an_epoch_is_drawn_alike_in_every_process_and_whatever_was_drawn_before():
    def drawn(*epochs):
        process = [sys.executable, "-c", DRAWING, json.dumps([TEXTS, epochs])]
        return json.loads(subprocess.run(process, capture_output=True, check=True).stdout)

    assert drawn(3) == drawn(0, 1, 2, 3)


def test_without_a_merge_left_out_the_pieces_are_those_of_the_one_best_segmentation():
    subwords = train_subwords(TEXTS, "bpe", 420)
    hardly = 1e-300
    assert subwords.sample(TEXTS + AWKWARD, hardly, "") == [
        subwords.encode(text) for text in TEXTS + AWKWARD
    ]


def test_with_nearly_all_merges_left_out_the_pieces_are_characters():
    subwords = train_subwords(TEXTS, "bpe", 420)
    (drawn,) = subwords.sample(["the lower"], 1 - 1e-12, "")
    assert subwords.pieces(drawn) == list("▁the▁lower")


def test_a_merge_is_left_out_as_often_as_the_strength_says():
    # One merge alone: P(a b) = p. Two in a row: ab, then abc; where ab is left out, bc comes next.
    merges, chance, p, many = (
        Merges({"ab": 0.0, "bc": -1.0, "abc": -2.0}),
        random.Random(1),
        0.3,
        20000,
    )
    found = Counter(tuple(merges.drawn("abc", p, chance)) for _ in range(many))
    expected = {
        ("abc",): (1 - p) ** 2 + p * (1 - p) ** 2,
        ("ab", "c"): (1 - p) * p,
        ("a", "bc"): p * (1 - p) * p,
        ("a", "b", "c"): p * p,
    }
    assert sum(expected.values()) == pytest.approx(1)
    for pieces, share in expected.items():
        assert found[pieces] / many == pytest.approx(share, abs=0.015)


def slowly_drawn(scores, word, strength, chance):
    """The twin of `Merges.drawn`: each merge is looked for among all pairs of pieces."""

    def until_the_next_left_out():
        return int(math.log(1.0 - chance.random()) / math.log1p(-strength))

    pieces, left_out, left = list(word), [False] * len(word), until_the_next_left_out()
    while True:
        found = [
            (-scores[pair], place)
            for place, pair in enumerate(map("".join, pairwise(pieces)))
            if pair in scores and not left_out[place]
        ]
        if not found:
            return pieces
        place = min(found)[1]
        if left:
            left -= 1
            pieces[place : place + 2] = ["".join(pieces[place : place + 2])]
            left_out[max(0, place - 1) : place + 2] = [False] * (2 if place else 1)
        else:
            left, left_out[place] = until_the_next_left_out(), True


@given(
    words=st.lists(st.text("abc", max_size=60), max_size=4),
    pieces=st.lists(st.text("abc", min_size=2, max_size=5), unique=True, max_size=30),
    equals=st.integers(1, 4),
    strength=st.floats(0.01, 0.99),
    seed=st.integers(0, 99),
)
def test_words_short_and_long_are_drawn_as_by_looking_for_each_merge_anew(
    words, pieces, equals, strength, seed
):
    scores = {piece: -float(rank // equals) for rank, piece in enumerate(pieces)}
    chance, of_twin, merges = random.Random(seed), random.Random(seed), Merges(scores)
    for word in words * 2:
        assert merges.drawn(word, strength, chance) == slowly_drawn(scores, word, strength, of_twin)
    assert chance.random() == of_twin.random()


def test_a_long_word_is_looked_up_a_few_times_for_each_of_its_characters():
    class Counted(dict):
        requested = 0

        def get(self, *key):
            self.requested += 1
            return super().get(*key)

    scores = Counted({"a" * length: -float(length) for length in range(2, 17)})
    pieces = Merges(scores).drawn("a" * 4_000, 0.1, random.Random(0))
    assert "".join(pieces) == "a" * 4_000
    assert scores.requested < 3 * 4_000


@pytest.mark.parametrize("kind", [Merges, Lattice])
def test_what_comes_once_is_not_remembered(kind):
    segmenter, chance = kind({"a": -1.0, "b": -2.0, "ab": -3.0, "ba": -4.0}), random.Random(0)
    for word in ("ab", "ab" * 50):
        segmenter.drawn(word, 0.1, chance)
    words = ("".join(chance.choices("ab", k=100)) for _ in range(300))
    tracemalloc.start()
    for word in words:
        segmenter.drawn(word, 0.1, chance)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 30_000


def test_a_segmentation_is_drawn_as_often_as_its_probability_says():
    scores = {"a": -1.0, "b": -2.0, "c": -1.5, "ab": -2.5, "bc": -1.2, "abc": -3.0}
    alpha, chance, many = 0.6, random.Random(1), 20000
    every = [("a", "b", "c"), ("ab", "c"), ("a", "bc"), ("abc",)]
    weights = [math.exp(alpha * sum(scores[piece] for piece in pieces)) for pieces in every]
    lattice = Lattice(scores)
    found = Counter(tuple(lattice.drawn("abc", alpha, chance)) for _ in range(many))
    for pieces, weight in zip(every, weights, strict=True):
        assert found[pieces] / many == pytest.approx(weight / sum(weights), abs=0.015)


def test_a_character_that_is_no_piece_stands_by_itself():
    chance = random.Random(0)
    for segmenter in (Merges({"ab": 0.0}), Lattice({"ab": -1.0})):
        assert "".join(segmenter.drawn("abxab", 0.1, chance)) == "abxab"
        assert "x" in segmenter.drawn("axb", 0.1, chance)


def test_sampling_in_many_threads_at_once_gives_what_it_gives_alone(subwords):
    alone = [subwords.sample(TEXTS, 0.2, str(seed)) for seed in range(8)]
    together = [None] * 8

    def draw(seed):
        together[seed] = subwords.sample(TEXTS, 0.2, str(seed))

    threads = [threading.Thread(target=draw, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_a_word_has_the_same_pieces_at_the_start_and_inside(subwords):
    alone = subwords.encode("the")
    assert subwords.encode("the the") == alone + alone


def test_pieces_are_readable(subwords):
    assert "".join(subwords.pieces(subwords.encode("the lower"))) == "▁the▁lower"
    assert subwords.pieces([0, 1, 2, 3]) == ["<pad>", "<unk>", "<s>", "</s>"]
    assert subwords.pieces(subwords.encode("😀"))[-1] == "<0x80>"


def test_half_a_character_reads_as_a_replacement_and_not_as_an_error(subwords):
    assert subwords.decode(subwords.encode("😀")[:-1]) == "\N{REPLACEMENT CHARACTER}"


def test_it_is_saved_and_loaded_as_it_was(subwords, tmp_path):
    subwords.save(tmp_path / "a.model")
    loaded = Subwords.load(tmp_path / "a.model")
    assert len(loaded) == len(subwords)
    assert [loaded.encode(text) for text in AWKWARD] == [subwords.encode(t) for t in AWKWARD]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_training_is_deterministic(kind):
    assert train_subwords(TEXTS, kind, 400).model == train_subwords(TEXTS, kind, 400).model


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_size_that_the_texts_cannot_fill_is_an_upper_bound(kind):
    small = train_subwords(["hello world", "how are you"], kind, 8000)
    assert 260 < len(small) < 400
    assert small.decode(small.encode("hello you")) == "hello you"


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_size_below_the_characters_is_an_error_that_says_how_many_there_are(kind, capfd):
    with pytest.raises(AttlasError, match=r"at least \d{3} ids.*got vocabulary.size = 200"):
        train_subwords(TEXTS, kind, 200)
    with pytest.raises(AttlasError, match="text to build the vocabulary from"):
        train_subwords(["", "  "], kind, 400)
    assert capfd.readouterr() == ("", "")


def test_a_size_beyond_four_bytes_is_an_error():
    with pytest.raises(
        AttlasError, match=r"of at most 2,147,483,647 ids; got .* = 2147483648; lower"
    ):
        train_subwords(TEXTS, "bpe", 2**31)


def test_a_text_of_nothing_but_the_sign_that_sentencepiece_keeps_is_reported_so():
    with pytest.raises(AttlasError, match=r"got nothing but U\+2585 \(▅\), which sentencepiece"):
        train_subwords(["\u2585", "", " \u2585"], "bpe", 400)
    with pytest.raises(AttlasError, match="got nothing; check"):
        train_subwords(["", " "], "bpe", 400)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_space_is_a_space_where_it_is_rarer_than_any_character(kind):
    spaceless = "速い茶色の狐が怠け者の犬を飛び越える" * 200
    subwords = train_subwords([spaceless] * 2, kind, 330)
    text = "犬 が  速い"
    assert "▁" in subwords.pieces(range(len(subwords)))
    assert not any(label.startswith("<0x") for label in subwords.pieces(subwords.encode(text)))
    assert subwords.decode(subwords.encode(text)) == text
    assert [subwords.decode(ids) for ids in subwords.sample([text] * 9, 0.4, "")] == [text] * 9


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("texts", [["a"], ["😀"], ["", "a"], ["日", "本"]])
def test_lines_of_one_character_are_text_enough(texts, kind):
    subwords = train_subwords(texts, kind, 8000)
    for text in texts:
        assert subwords.decode(subwords.encode(text)) == text
        assert not any(label.startswith("<0x") for label in subwords.pieces(subwords.encode(text)))


def test_a_long_line_takes_part_in_training():
    long = " ".join(["zyzzyva"] * 2000)
    assert "▁zyzzyva" in train_subwords([long, "a b"], "bpe", 300).pieces(range(270))


def test_a_file_that_is_cut_off_is_named(tmp_path):
    for left, reported in ((b"not a model", ".*"), (b"", "an empty one")):
        (tmp_path / "tokenizer.model").write_bytes(left)
        with pytest.raises(AttlasError, match=rf"tokenizer.model: {reported}; put the file back"):
            Subwords.load(tmp_path / "tokenizer.model")


def test_what_is_no_model_of_ours_is_refused():
    with pytest.raises(AttlasError, match="a whole sentencepiece model"):
        Subwords(b"not a model")
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=written,
        vocab_size=120,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    with pytest.raises(AttlasError, match="ids 0 to 3 are <pad>, <unk>, <s>, </s>; got '<unk>"):
        Subwords(written.getvalue())


def test_a_sign_that_sentencepiece_keeps_to_itself_takes_no_line_away():
    plain = ["the cat sat on the mat"] * 50 + ["wonderful dogs run quickly"] * 50
    marked = [text.replace("run ", "run \u2585 ") for text in plain]
    pieces = train_subwords(marked, "bpe", 330)
    assert len(pieces.encode("wonderful")) == len(
        train_subwords(plain, "bpe", 330).encode("wonderful")
    )
    assert pieces.decode(pieces.encode("a \u2585 b")) == "a \u2585 b"

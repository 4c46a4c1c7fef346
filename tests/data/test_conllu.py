"""Treebanks are read as their format says, and what is no treebank is told."""

import gzip
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.data.conllu import Multiword, Sentence, Word, read_conllu
from attlas.errors import AttlasError

# What Universal Dependencies shows of multiword tokens and empty nodes.
SPANISH = """\
# sent_id = es-1
# text = vámonos al mar
# newpar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t_\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t_\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\t_

# text = Sue likes coffee and Bill tea
1\tSue\tSue\tPROPN\t_\t_\t2\tnsubj\t_\t_
2\tlikes\tlike\tVERB\t_\t_\t0\troot\t_\t_
3\tcoffee\tcoffee\tNOUN\t_\t_\t2\tobj\t_\t_
4\tand\tand\tCCONJ\t_\t_\t5\tcc\t_\t_
5\tBill\tBill\tPROPN\t_\t_\t2\tconj\t_\t_
5.1\tlikes\tlike\tVERB\t_\t_\t_\t_\t2:conj\t_
6\ttea\ttea\tNOUN\t_\t_\t5\torphan\t_\t_
"""


def line(number, head, relation="dep", form="w"):
    return f"{number}\t{form}\tl\tX\t_\t_\t{head}\t{relation}\t_\t_"


def written(folder, text):
    path = folder / "some.conllu"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_words_are_read_beside_multiword_tokens_and_without_empty_nodes(tmp_path, packed, ending):
    raw = SPANISH.replace("\n", ending).encode()
    first, second = read_conllu(written(tmp_path, gzip.compress(raw) if packed else raw))
    assert first.forms == ("vamos", "nos", "a", "el", "mar")
    assert first.multiwords == (Multiword("vámonos", 1, 2), Multiword("al", 3, 4))
    assert first.comments == {"sent_id": "es-1", "text": "vámonos al mar"}
    assert first.words[4] == Word("mar", "mar", "NOUN", 1, "obl")
    assert second.forms == ("Sue", "likes", "coffee", "and", "Bill", "tea")
    assert [word.head for word in second.words] == [2, 0, 2, 5, 2, 5]


def test_a_blank_line_more_or_less_at_the_end_changes_nothing(tmp_path):
    plain = list(read_conllu(written(tmp_path, SPANISH)))
    assert list(read_conllu(written(tmp_path, SPANISH.rstrip("\n")))) == plain
    assert list(read_conllu(written(tmp_path, f"\n# a comment alone\n\n{SPANISH}\n\n"))) == plain


def test_a_form_may_hold_spaces_and_separators_that_are_no_line_feed(tmp_path):
    text = line(1, 0, "root", "10 000") + "\n" + line(2, 1, "obj", "a\u2028b") + "\n"
    (sentence,) = read_conllu(written(tmp_path, text))
    assert sentence.forms == ("10 000", "a\u2028b")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("1 the the DET", r"10 columns, separated by tabs, in line 1 of .*; got 1;"),
        (line(1, 0) + "\n" + line(3, 1), r"the word number 2, in line 2 .*; got '3'"),
        (line(1, 0) + "\n" + line(2, 9), r"a head from 0 to 2, in line 2 .*; got 9"),
        (line(1, "_"), r"the number of the head, 0 for the root, in line 1 .*; got '_'"),
        (line(1, 1), r"a head that is another word, in line 1 .*; got 1, the word itself"),
        (line(1, "9" * 5000), r"the number of the head"),
        (line("1-3", "_") + "\n" + line(1, 0), r"a token of the words 1 to 1, .*; got 1-3"),
        (line("2-3", "_") + "\n" + line(1, 0), r"begins at the word 1, .*; got 2-3"),
        (line("one", 0), r"the word number 1, .*; got 'one'"),
        (b"1\t\xff", r"UTF-8 text in .*; got byte 0xff"),
    ],
)
def test_what_is_no_treebank_is_reported_with_its_line(tmp_path, text, reported):
    with pytest.raises(AttlasError, match=reported):
        list(read_conllu(written(tmp_path, text)))


def test_a_file_that_is_not_there_is_reported(tmp_path):
    with pytest.raises(AttlasError, match="no file at"):
        list(read_conllu(tmp_path / "none.conllu"))


@given(st.data())
def test_what_was_written_is_read(tmp_path_factory, data):
    forms = st.text(st.characters(exclude_characters="\t\n\r\ufeff", codec="utf-8"), min_size=1)
    sentences = []
    for _ in range(data.draw(st.integers(1, 3))):
        count = data.draw(st.integers(1, 5))
        heads = [
            data.draw(st.integers(0, count).filter(lambda head, own=own: head != own))
            for own in range(1, count + 1)
        ]
        words = tuple(Word(data.draw(forms), "l", "X", head, "dep") for head in heads)
        sentences.append(Sentence(words))
    text = "\n\n".join(
        "\n".join(line(n, w.head, form=w.form) for n, w in enumerate(sentence.words, 1))
        for sentence in sentences
    )
    path = written(tmp_path_factory.mktemp("treebank"), text + "\n")
    assert list(read_conllu(path)) == sentences


def test_a_real_treebank_is_read_whole(shared_data):
    """English EWT: its 2,001 sentences, and a word for each line that begins with a number."""
    path = shared_data / "ud" / "en_ewt-ud-dev.conllu.gz"
    sentences = list(read_conllu(path))
    numbered = re.findall(rb"^\d+\t", gzip.decompress(path.read_bytes()), re.MULTILINE)
    assert len(sentences) == 2001
    assert sum(len(sentence.words) for sentence in sentences) == len(numbered)
    assert sum(word.head == 0 for s in sentences for word in s.words) == 2001
    assert sentences[0].comments["text"] == "From the AP comes this story :"
    assert [word.head for word in sentences[0].words] == [3, 3, 4, 0, 6, 4, 4]

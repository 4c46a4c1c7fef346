"""Attention against a treebank: by hand, by brute force, and on a real model."""

import importlib.util
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from attlas.analysis.syntax import DIRECTIONS, RelationHead, between_words, syntax, word_numbers
from attlas.data.conllu import Sentence, Word
from attlas.errors import AttlasError
from attlas.patterns import causal, everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace
from support.minilm import minilm

ROOT = Path(__file__).resolve().parents[2]


def sentence(*words):
    """Words as (form, head, relation)."""
    return Sentence(tuple(Word(form, form, "X", head, relation) for form, head, relation in words))


def traced(attention_map, layer="layer"):
    trace = Trace()
    trace.record(layer, attention_map)
    trace.set_kind(layer, cross_attention=False)
    return trace


# [CLS] the play ##ers won [SEP]: the words 0 = the, 1 = players, 2 = won.
PARTS = torch.tensor([-1, 0, 1, 1, 2, -1])
MAP = [
    [0.50, 0.10, 0.10, 0.10, 0.10, 0.10],
    [0.10, 0.10, 0.20, 0.30, 0.25, 0.05],
    [0.20, 0.30, 0.10, 0.10, 0.20, 0.10],
    [0.00, 0.10, 0.20, 0.20, 0.40, 0.10],
    [0.60, 0.06, 0.04, 0.05, 0.20, 0.05],
    [0.50, 0.10, 0.10, 0.10, 0.10, 0.10],
]
PLAYERS = sentence(("the", 2, "det"), ("players", 3, "nsubj"), ("won", 0, "root"))


def test_weight_to_a_split_word_adds_up_and_weight_from_it_is_the_mean():
    attention_map = DenseAttentionMap(torch.tensor(MAP, dtype=torch.float64)[None, None])
    ((first, rows),) = between_words(attention_map, PARTS, 3)
    assert first == 0
    expected = [
        [0.10, 0.20 + 0.30, 0.25],
        [(0.30 + 0.10) / 2, (0.20 + 0.40) / 2, (0.20 + 0.40) / 2],
        [0.06, 0.04 + 0.05, 0.20],
    ]
    torch.testing.assert_close(rows[0], torch.tensor(expected, dtype=torch.float64))


def test_heads_are_found_in_both_directions_as_by_hand():
    """What looks at itself the most, "won" at "won" and "players" at its own parts, is passed over.

    the: looks most at players, its head; won (0.06) looks at it less than players (0.20) do. won:
    "the" looks at it with 0.25, "players" with 0.30.
    """
    attention_map = DenseAttentionMap(torch.tensor(MAP, dtype=torch.float64)[None, None])
    table = syntax(traced(attention_map), [PLAYERS], PARTS[None])
    assert table.pairs == {"all": 2, "det": 1, "nsubj": 1}
    assert table.relations == ("all", "det", "nsubj")
    assert table.accuracy("det", "layer").tolist() == [[1.0], [1.0]]
    # players: looks most at won (0.30 against 0.20); the looks at it with 0.50, won with 0.09.
    assert table.accuracy("nsubj", "layer").tolist() == [[1.0], [0.0]]
    assert table.accuracy("all", "layer").tolist() == [[1.0], [0.5]]
    assert table.baseline("all") == (1, 1.0)
    assert table.left_out == 0
    best = table.best("nsubj")
    assert best == RelationHead("nsubj", 1, "layer", 0, DIRECTIONS[0], 1.0, 1.0, 1)
    assert not best.syntactic


def test_a_head_is_syntactic_from_a_tenth_above_its_baseline():
    assert RelationHead("obj", 10, "layer", 0, DIRECTIONS[0], 0.75, 0.5, -2).syntactic
    assert RelationHead("obj", 10, "layer", 0, DIRECTIONS[0], 6 / 10, 5 / 10, -2).syntactic
    assert not RelationHead("obj", 100, "layer", 0, DIRECTIONS[0], 0.59, 0.5, -2).syntactic


def test_a_query_that_sees_no_other_word_finds_no_head():
    """Causal: the first word sees itself alone, and argmax of nothing is not word 0."""
    attention_map = FactoredAttentionMap(
        torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 3, 2), 1.0, causal, 0
    )
    chain = sentence(("a", 0, "root"), ("b", 1, "x"), ("c", 1, "x"))
    table = syntax(traced(attention_map), [chain], torch.arange(3)[None])
    assert table.accuracy("x", "layer").tolist() == [[1.0], [0.0]]
    back = sentence(("a", 2, "x"), ("b", 3, "x"), ("c", 0, "root"))
    table = syntax(traced(attention_map), [back], torch.arange(3)[None])
    assert table.accuracy("x", "layer").tolist() == [[0.0], [1.0]]


def test_pairs_of_words_without_a_token_are_left_out_and_counted():
    attention_map = DenseAttentionMap(torch.tensor(MAP, dtype=torch.float64)[None, None])
    without = PARTS.where(PARTS != 0, -1)
    table = syntax(traced(attention_map), [PLAYERS], without[None])
    assert table.pairs == {"all": 1, "nsubj": 1}
    assert table.left_out == 1


@st.composite
def treebanks(draw):
    """Sentences with their heads, words of one to three parts, special tokens, and padding."""
    torch.manual_seed(draw(st.integers(0, 2**31)))
    sentences, words = [], []
    for _ in range(draw(st.integers(1, 3))):
        count = draw(st.integers(2, 5))
        heads = [
            draw(st.integers(0, count).filter(lambda head, own=own: head != own))
            for own in range(1, count + 1)
        ]
        relations = [draw(st.sampled_from("xyz")) for _ in heads]
        sentences.append(list(zip("abcde", heads, relations, strict=False)))
        parts = [[n] * draw(st.integers(1, 3)) for n in range(count)]
        words.append([-1, *(number for part in parts for number in part), -1])
    longest = max(map(len, words))
    token_mask = torch.tensor([[n < len(row) for n in range(longest)] for row in words])
    numbers = torch.tensor([row + [-1] * (longest - len(row)) for row in words])
    parts = torch.randn(2, len(words), 2, longest, 4).double() * 2
    attention_map = FactoredAttentionMap(parts[0], parts[1], 1.0, everywhere, 0, token_mask)
    return sentences, numbers, attention_map


def read(treebank):
    """Built here, as types are checked by samples, which a strategy may not draw."""
    sentences, numbers, attention_map = treebank
    return [sentence(*words) for words in sentences], numbers, attention_map


def brute(sentences, numbers, attention_map):
    """Correct heads by relation and direction, of attention head 1, out of dense word maps."""
    hits = Counter()
    for row, each in enumerate(sentences):
        weights, belongs = attention_map.weights()[row, 1].numpy(), numbers[row].numpy()
        count = len(each.words)
        to_words = np.stack([weights[:, belongs == word].sum(1) for word in range(count)], 1)
        between = np.stack([to_words[belongs == word].mean(0) for word in range(count)])
        np.fill_diagonal(between, -1)
        for place, word in enumerate(each.words):
            for direction, guesses in enumerate((between, between.T)):
                if word.head and guesses[place].argmax() == word.head - 1:
                    hits[word.relation, direction] += 1
    return hits


@given(treebanks())
def test_accuracies_are_what_their_definition_says_whatever_is_held_at_once(treebank):
    sentences, numbers, attention_map = read(treebank)
    table = syntax(traced(attention_map), sentences, numbers)
    expected = brute(sentences, numbers, attention_map)
    pairs = Counter(w.relation for each in sentences for w in each.words if w.head)
    assert {name: table.pairs[name] for name in pairs} == pairs
    for relation, count in pairs.items():
        for direction in (0, 1):
            accuracy = table.accuracy(relation, "layer")[direction, 1]
            assert float(accuracy) == pytest.approx(expected[relation, direction] / count)
    whole = list(between_words(attention_map.at(0), numbers[0], len(sentences[0].words)))
    few = list(between_words(attention_map.at(0), numbers[0], len(sentences[0].words), at_once=1))
    assert len(few) == len(sentences[0].words)
    torch.testing.assert_close(torch.cat([rows for _, rows in few], 1), whole[0][1])


@given(treebanks())
def test_a_corpus_is_the_sum_of_its_sentences(treebank):
    sentences, numbers, attention_map = read(treebank)
    whole = syntax(traced(attention_map), sentences, numbers)
    total = syntax(traced(attention_map.at(0)), sentences[:1], numbers[:1])
    for row in range(1, len(sentences)):
        total = total + syntax(
            traced(attention_map.at(row)), sentences[row : row + 1], numbers[[row]]
        )
    assert total.pairs == whole.pairs
    for relation in whole.relations:
        assert total.baseline(relation) == whole.baseline(relation)
        assert torch.equal(total.accuracy(relation, "layer"), whole.accuracy(relation, "layer"))


def test_the_baseline_is_the_best_of_all_fixed_offsets():
    words = [("a", 2, "x"), ("b", 0, "root"), ("c", 2, "x"), ("d", 3, "x"), ("e", 2, "x")]
    attention_map = DenseAttentionMap(torch.full((1, 1, 5, 5), 0.2))
    table = syntax(traced(attention_map), [sentence(*words)], torch.arange(5)[None])
    assert table.offsets["x"] == {1: 1, -1: 2, -3: 1}
    assert table.baseline("x") == (-1, 0.5)


def test_tokenizers_tell_the_words_of_their_tokens():
    tokenizer = AutoTokenizer.from_pretrained(minilm(), local_files_only=True)
    texts = [["unbelievably", "good"], ["Yes"]]
    encoding = tokenizer(texts, is_split_into_words=True, padding=True, return_tensors="pt")
    numbers = word_numbers(encoding)
    assert numbers.shape == encoding["input_ids"].shape
    pieces = tokenizer.tokenize("unbelievably")
    assert len(pieces) > 1
    assert numbers[0].tolist() == [-1, *[0] * len(pieces), 1, -1]
    assert numbers[1].tolist() == [-1, 0, -1] + [-1] * (numbers.shape[1] - 3)
    with pytest.raises(AttlasError, match="a fast tokenizer"):
        word_numbers({"input_ids": [[1, 2]]})
    with pytest.raises(AttlasError, match="tokenise a list of word lists"):
        word_numbers(tokenizer(texts[0], is_split_into_words=True))


def test_what_does_not_fit_is_reported():
    trace = traced(DenseAttentionMap(torch.full((1, 1, 6, 6), 1 / 6)))
    with pytest.raises(
        AttlasError, match="as many texts as there are sentences; got 1 texts and 2"
    ):
        syntax(trace, [PLAYERS, PLAYERS], PARTS[None])
    with pytest.raises(AttlasError, match="a sentence for each of 1 batch rows"):
        syntax(trace, [PLAYERS, PLAYERS], PARTS[None].expand(2, -1))
    with pytest.raises(AttlasError, match="the number of its word, from -1 to below 3"):
        syntax(trace, [PLAYERS], PARTS[None] + 1)
    with pytest.raises(AttlasError, match=r"below 3; got \(6,\), from -100 to"):
        syntax(trace, [PLAYERS], PARTS[None].clamp(min=0).index_fill(1, torch.tensor(0), -100))
    with pytest.raises(AttlasError, match="for each of 6 tokens"):
        syntax(trace, [PLAYERS], PARTS[None, :5])
    cross_attention = Trace()
    cross_attention.record("cross", DenseAttentionMap(torch.full((1, 1, 4, 6), 1 / 6)))
    with pytest.raises(AttlasError, match="one whole map of self-attention"):
        syntax(cross_attention, [PLAYERS], PARTS[None])
    cross_attention.set_kind("cross", cross_attention=True)
    with pytest.raises(AttlasError, match="at least one layer of self-attention"):
        syntax(cross_attention, [PLAYERS], PARTS[None])
    table = syntax(trace, [PLAYERS], PARTS[None])
    with pytest.raises(AttlasError, match="one of the relations"):
        table.best("obj")
    with pytest.raises(AttlasError, match="one of the layers"):
        table.accuracy("det", "other")
    other = syntax(traced(trace["layer"], "other"), [PLAYERS], PARTS[None])
    with pytest.raises(AttlasError, match="a table of the layers"):
        _ = table + other


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("syntax", ROOT / "scripts" / "syntax.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_a_real_model_beats_its_baselines_on_real_sentences(
    script, shared_data, capsys
):
    """MiniLM on English EWT: objects and determiners are found better than by any fixed offset."""
    treebank = shared_data / "ud" / "en_ewt-ud-dev.conllu.gz"
    assert script.main([str(minilm()), str(treebank), "--sentences", "40", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported["sentences"] == 40
    found = {each["relation"]: each for each in reported["relations"]}
    for relation in ("det", "obj", "nsubj"):
        assert found[relation]["accuracy"] > found[relation]["baseline"]
    assert found["obj"]["syntactic"]


TWO = """\
1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\t_
2\tcat\tcat\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tsleeps\tsleep\tVERB\t_\t_\t0\troot\t_\t_

1\tYes\tyes\tINTJ\t_\t_\t0\troot\t_\t_
"""


def test_the_script_writes_a_table_and_tells_what_is_wrong(script, tmp_path, capsys):
    treebank = tmp_path / "two.conllu"
    treebank.write_text(TWO, encoding="utf-8")
    assert script.main([str(minilm()), str(treebank), "--least", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 sentences, 0 pairs left out: a word without a token"
    assert [line.split()[:2] for line in lines[2:]] == [["all", "2"], ["det", "1"], ["nsubj", "1"]]
    assert script.main([str(minilm()), str(tmp_path / "none")]) == 2
    assert "no file at" in capsys.readouterr().err
    assert script.main([str(tmp_path), str(treebank)]) == 2
    assert "a model of Hugging Face in" in capsys.readouterr().err
    (tmp_path / "empty").write_text("", encoding="utf-8")
    assert script.main([str(minilm()), str(tmp_path / "empty")]) == 2
    assert "sentences with dependencies" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        script.main([str(minilm()), str(treebank), "--batch", "0"])


def test_weights_between_words_sum_to_what_is_not_of_a_word():
    attention_map = DenseAttentionMap(torch.tensor(MAP, dtype=torch.float64)[None, None])
    ((_, rows),) = between_words(attention_map, PARTS, 3)
    rest = [0.15, (0.30 + 0.10) / 2, 0.65]
    assert rows[0].sum(-1).tolist() == pytest.approx([1 - each for each in rest])
    assert math.isclose(float(rows.sum()), 3 - sum(rest))

import tracemalloc
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import (
    BEGIN,
    END,
    PAD,
    Batches,
    BatchingConfig,
    EncodedCorpus,
    VocabularyConfig,
    batches_by_length,
    build_vocabularies,
    encode_corpus,
    read_pairs,
    sample_corpus,
)
from attlas.data.bucketing import Ragged
from attlas.errors import AttlasError

LENGTHS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=60)


def corpus(lengths):
    """Pairs of these lengths; every id says which pair and place it is of."""
    sides = [
        Ragged.of(
            [[4 + 100 * n + place for place in range(pair[side])] for n, pair in enumerate(lengths)]
        )
        for side in (0, 1)
    ]
    return EncodedCorpus("some pairs", *sides, tuple(range(11, 11 + len(lengths))))


@given(rows=st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=9), max_size=9))
def test_rows_of_unequal_length_are_packed_as_they_were(rows):
    ragged = Ragged.of(iter(rows))
    assert (ragged.ids.dtype, ragged.starts.dtype) == (np.int32, np.int64)
    assert [ragged[place].tolist() for place in range(len(ragged))] == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]


def test_packing_holds_little_more_than_what_is_packed():
    tracemalloc.start()
    ragged = Ragged.of(list(range(1_000, 1_050)) for _ in range(2_000))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3 * (ragged.ids.nbytes + ragged.starts.nbytes)


@given(lengths=LENGTHS, tokens=st.integers(42, 300), rows=st.none() | st.integers(1, 9))
def test_each_pair_is_in_one_batch_and_no_batch_is_over_budget(lengths, tokens, rows):
    batches = Batches(
        corpus(lengths), BatchingConfig(max_tokens=tokens, rows=rows, max_length=40), 1
    )
    epoch = batches.epoch(3)
    assert sorted(i for batch in epoch for i in batch) == list(range(len(lengths)))
    for indices in epoch:
        batch = batches.batch(indices)
        assert max(batch.source.numel(), batch.target.numel()) <= tokens
        assert rows is None or len(indices) <= rows


@given(lengths=LENGTHS)
def test_a_batch_holds_what_the_corpus_holds_framed_and_padded(lengths):
    encoded = corpus(lengths)
    batches = Batches(encoded, BatchingConfig(max_length=40), 1)
    for indices in batches.epoch(0):
        batch = batches.batch(indices)
        assert batch.indices == indices
        for row, i in enumerate(indices):
            source, target = encoded.source[i].tolist(), encoded.target[i].tolist()
            assert batch.source[row][batch.source_mask[row]].tolist() == [*source, END]
            assert batch.target[row][batch.target_mask[row]].tolist() == [BEGIN, *target, END]
            assert batch.source_mask[row].sum() == len(source) + 1
        assert (batch.source[~batch.source_mask] == PAD).all()
        assert (batch.target[~batch.target_mask] == PAD).all()
        assert batch.source_mask[:, 0].all()  # padding is on the right alone
        assert (batch.source_mask[:, :-1] >= batch.source_mask[:, 1:]).all()
        assert batch.tokens == sum(lengths[i][1] + 1 for i in indices)


@given(lengths=LENGTHS, most=st.integers(1, 30))
def test_a_cut_target_has_no_end_and_a_cut_source_has_one_as_in_a_search(lengths, most):
    encoded = corpus(lengths)
    batches = Batches(encoded, BatchingConfig(max_length=most, overlong="cut"), 1)
    for indices in batches.epoch(0):
        batch = batches.batch(indices)
        for row, i in enumerate(indices):
            source, target = encoded.source[i].tolist(), encoded.target[i].tolist()
            ended = [END] if len(target) <= most else []
            assert batch.source[row][batch.source_mask[row]].tolist() == [*source[:most], END]
            assert batch.target[row][batch.target_mask[row]].tolist() == [
                BEGIN, *target[:most], *ended,
            ]  # fmt: skip
            assert batch.target_mask[row].sum() == 1 + len(target[:most]) + len(ended)


def test_the_order_is_a_function_of_seed_and_epoch_alone():
    encoded = corpus([(n % 13, n % 7) for n in range(200)])
    config = BatchingConfig(max_tokens=100, max_length=20)

    def epochs(seed, order):
        batches = Batches(encoded, config, seed)
        return {number: batches.epoch(number) for number in order}

    once = epochs(1, [0, 1, 2])
    torch.manual_seed(9)
    np.random.seed(9)  # the global state must not matter
    assert epochs(1, [2, 0, 1]) == once
    assert once[0] != once[1] != once[2]
    assert epochs(2, [0])[0] != once[0]


def test_pairs_of_one_length_meet_others_in_each_epoch():
    batches = Batches(corpus([(5, 5)] * 100), BatchingConfig(max_tokens=70, max_length=20), 1)
    companions = [set(next(b for b in batches.epoch(n) if 0 in b)) for n in range(5)]
    assert len(set.union(*companions)) > 20


@pytest.mark.parametrize("overlong", ["skip", "cut"])
def test_an_overlong_pair_is_named_by_line_and_skipped_or_cut(overlong):
    encoded = corpus([(3, 4), (100_000, 2), (2, 90), (4, 3)])
    config = BatchingConfig(max_tokens=64, max_length=30, overlong=overlong)
    batches = Batches(encoded, config, 1)
    done = "left out" if overlong == "skip" else "cut"
    assert f"{done} 2 with more than 30 tokens" in str(batches.report)
    assert "(lines 12, 13)" in str(batches.report)
    indices = sorted(i for batch in batches.epoch(0) for i in batch)
    assert indices == ([0, 3] if overlong == "skip" else [0, 1, 2, 3])
    assert batches.report.kept == len(indices)
    for batch in batches.epoch(0):
        held = batches.batch(batch)
        assert max(held.source.numel(), held.target.numel()) <= 64
        assert held.source[0, int(held.source_mask[0].sum()) - 1] == END


def test_nothing_short_enough_is_an_error():
    with pytest.raises(AttlasError, match="at least one pair of at most 3 tokens in some pairs"):
        Batches(corpus([(9, 9)]), BatchingConfig(max_length=3), 1)
    with pytest.raises(AttlasError, match="got no pairs"):
        Batches(corpus([]), BatchingConfig(), 1)


def test_a_pair_must_fit_into_the_budget():
    with pytest.raises(AttlasError, match=r"max_length of 62 or less.*got 63"):
        BatchingConfig.read({"max_tokens": 64, "max_length": 63}, "recipe.toml")
    assert BatchingConfig(max_tokens=64, max_length=62).max_length == 62


@given(
    lengths=st.lists(st.integers(0, 50)),
    budget=st.integers(1, 200),
    rows=st.none() | st.integers(1, 9),
    shares=st.integers(1, 4),
)
def test_batches_for_inference_hold_each_source_once_within_the_budget(
    lengths, budget, rows, shares
):
    batches = batches_by_length([[7] * length for length in lengths], budget, rows, shares)
    assert all(len(batch) <= (rows or len(lengths)) for batch in batches)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        widest = max(lengths[i] for i in batch) + 1
        assert len(batch) == 1 or len(batch) * widest <= budget


def test_batches_that_are_dealt_out_are_alike_and_a_multiple_of_the_shares():
    sources = [[7] * (5 + place % 11) for place in range(999)]
    assert len(batches_by_length(sources, 2048)) == 6
    assert len(batches_by_length(sources, 2048, shares=4)) == 8
    sizes = [
        len(batch) * (1 + max(len(sources[place]) for place in batch))
        for batch in batches_by_length(sources, 2048, shares=4)
    ]
    assert max(sizes) < 1.25 * min(sizes)


@pytest.fixture(scope="module")
def multi30k(shared_data):
    folder = shared_data / "multi30k"
    read = read_pairs([folder / "train.en.gz", folder / "train.de.gz"])
    return read, build_vocabularies(VocabularyConfig(size=4000), read.pairs)


@pytest.mark.slow
def test_little_of_a_batch_of_real_text_is_padding(multi30k):
    batches = Batches(encode_corpus(*multi30k), BatchingConfig(), 1)
    held = [batches.batch(indices) for indices in batches.epoch(0)]
    sides = {
        "source": [batch.source_mask for batch in held],
        "target": [batch.target_mask for batch in held],
    }
    for name, token_mask in sides.items():
        fill = sum(int(r.sum()) for r in token_mask) / sum(r.numel() for r in token_mask)
        assert fill > 0.9, name
    assert Counter(i for batch in held for i in batch.indices) == Counter(range(29_000))


@pytest.mark.slow
def test_a_sampled_epoch_of_real_text_is_the_same_after_a_resume(multi30k):
    whole, vocabularies = multi30k
    read = replace(whole, pairs=whole.pairs[:6000], lines=whole.lines[:6000])

    def epoch(number):
        encoded = sample_corpus(read, vocabularies, 0.1, 7, number)
        return encoded, Batches(encoded, BatchingConfig(), 7)

    epoch(0)
    encoded, batches = epoch(1)
    again, resumed = epoch(1)
    assert np.array_equal(encoded.source.ids, again.source.ids)
    assert np.array_equal(encoded.target.ids, again.target.ids)
    middle = len(batches.epoch(1)) // 2
    for indices, same in zip(batches.epoch(1)[middle:], resumed.epoch(1)[middle:], strict=True):
        assert torch.equal(batches.batch(indices).target, resumed.batch(same).target)


def test_sampling_without_subwords_is_an_error(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\n")
    read = read_pairs([tmp_path / "a.tsv"])
    vocabularies = build_vocabularies(VocabularyConfig(kind="words"), read.pairs)
    with pytest.raises(AttlasError, match="subwords to sample from; got Words"):
        sample_corpus(read, vocabularies, 0.1, 1, 0)

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import ToyData, load_splits
from attlas.errors import AttlasError

ANSWERS = {"reverse": lambda s: s[::-1], "copy": lambda s: s, "sort": sorted}


@given(
    task=st.sampled_from(sorted(ANSWERS)),
    length=st.tuples(st.integers(1, 40), st.integers(0, 40)).map(lambda b: (b[0], sum(b))),
    symbols=st.integers(3, 2000),
    seed=st.integers(0, 2**40),
)
def test_the_target_is_the_answer_of_the_task_at_any_length_and_vocabulary(
    task, length, symbols, seed
):
    data = ToyData(task=task, length=length, symbols=symbols, train=40, valid=5, test=6, seed=seed)
    splits = load_splits(data)
    assert [len(c) for c in (splits.train, splits.valid, splits.test)] == [40, 5, 6]
    for pair in splits.train.pairs:
        sequence = [int(symbol) for symbol in pair.source.split(" ")]
        assert length[0] <= len(sequence) <= length[1]
        assert all(0 <= symbol < symbols for symbol in sequence)
        assert [int(s) for s in pair.target.split(" ")] == list(ANSWERS[task](sequence))


def test_the_seed_decides_the_sequences():
    def checksums(seed):
        splits = load_splits(ToyData(train=50, valid=9, test=9, seed=seed))
        return splits.train.checksum, splits.valid.checksum, splits.test.checksum

    assert checksums(3) == checksums(3)
    assert len({*checksums(3), *checksums(4)}) == 6


def test_no_sequence_is_on_two_sides_even_where_there_are_few():
    splits = load_splits(ToyData(length=(1, 2), symbols=9, train=2000, valid=100, test=100))
    train, valid, test = (set(c.sources) for c in (splits.train, splits.valid, splits.test))
    assert not train & valid
    assert not train & test
    assert not valid & test
    assert len(train | valid | test) == 9 + 81


@pytest.mark.parametrize(("length", "symbols"), [((1, 1), 3), ((2, 4), 1), ((5, 500), 1)])
def test_the_smallest_spaces_have_three_sides(length, symbols):
    splits = load_splits(ToyData(length=length, symbols=symbols, train=20, valid=5, test=5))
    sides = [set(c.sources) for c in (splits.train, splits.valid, splits.test)]
    assert all(sides)
    assert len(set.union(*sides)) == sum(map(len, sides))


def test_every_length_and_every_symbol_occurs():
    sources = [s.split() for s in load_splits(ToyData(length=(2, 7), symbols=5)).train.sources]
    assert {len(s) for s in sources} == set(range(2, 8))
    assert {symbol for s in sources for symbol in s} == set("01234")


def test_too_few_sequences_for_three_sides_is_an_error_and_not_an_endless_search():
    with pytest.raises(AttlasError, match=r"2 symbol\(s\) in lengths 1 to 1"):
        load_splits(ToyData(length=(1, 1), symbols=2))


def test_lengths_that_make_no_sense_are_refused():
    with pytest.raises(AttlasError, match=r"length = \[shortest, longest\].*got \[5, 2\]"):
        ToyData.read({"length": [5, 2]}, "recipe.toml")

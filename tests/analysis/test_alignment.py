import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.analysis.alignment import (
    argmax_links,
    argmax_links_of_sources,
    intersection,
    threshold_links,
)
from attlas.errors import AttlasError
from attlas.patterns import everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap


def attention_map(*rows: list[float]) -> DenseAttentionMap:
    return DenseAttentionMap(torch.tensor([[[list(row) for row in rows]]]))


# Four queries of a decoder: <s> ich sehe ihn, which write ich sehe ihn </s>; keys i see him </s>.
SHIFTED = attention_map(
    [0.1, 0.2, 0.1, 0.6],
    [0.6, 0.2, 0.1, 0.1],
    [0.2, 0.4, 0.3, 0.1],
    [0.0, 0.1, 0.3, 0.6],
)
SOURCES, TARGETS = [(0,), (1,), (2,), ()], [(0,), (1,), (2,), ()]


def test_the_step_that_writes_a_word_and_the_one_that_reads_it_give_other_links() -> None:
    written = argmax_links(SHIFTED, SOURCES, TARGETS)
    assert written == {(1, 0), (0, 1), (1, 2)}  # END is no candidate: 0.2 is the most of row 0
    read = argmax_links(SHIFTED, SOURCES, TARGETS, step="reads")
    assert read == {(0, 0), (1, 1), (2, 2)}


def test_the_greatest_of_a_row_of_a_column_and_what_is_above_a_threshold() -> None:
    looked = attention_map([0.7, 0.2, 0.1], [0.4, 0.35, 0.25])
    assert argmax_links(looked) == {(0, 0), (0, 1)}
    assert argmax_links_of_sources(looked) == {(0, 0), (1, 1), (2, 1)}
    assert intersection(argmax_links(looked), argmax_links_of_sources(looked)) == {(0, 0)}
    assert threshold_links(looked, 0.3) == {(0, 0), (0, 1), (1, 1)}
    assert threshold_links(looked, 0.9) == frozenset()


def test_subwords_are_merged_to_words_and_special_tokens_left_out_on_both_sides() -> None:
    # source [CLS] pla ##ying chess [SEP]; target Schach spiel en </s>
    looked = attention_map(
        [0.5, 0.0, 0.1, 0.3, 0.1],
        [0.0, 0.6, 0.1, 0.1, 0.2],
        [0.1, 0.2, 0.4, 0.2, 0.1],
        [0.0, 0.0, 0.0, 0.0, 1.0],
    )
    sources, targets = [(), (0,), (0,), (1,), ()], [(0,), (1,), (1,), ()]
    assert argmax_links(looked, sources, targets) == {(1, 0), (0, 1)}


def test_layers_and_heads_are_averaged() -> None:
    one = DenseAttentionMap(torch.tensor([[[[0.9, 0.1]], [[0.5, 0.5]]]]))  # mean 0.7, 0.3
    other = DenseAttentionMap(torch.tensor([[[[0.1, 0.9]]]]))
    assert argmax_links(one) == {(0, 0)}
    assert argmax_links([one, other]) == {(1, 0)}  # 0.4, 0.6


def test_heads_of_half_precision_are_averaged_without_ties() -> None:
    torch.manual_seed(0)
    weights = (2 * torch.randn(50, 8, 20, 20)).softmax(-1).to(torch.bfloat16)
    for map_ in weights:
        means = map_.float().mean(0)
        expected = {(int(best), t) for t, best in enumerate(means.argmax(-1))}
        assert argmax_links(DenseAttentionMap(map_[None])) == expected


def test_a_word_whose_query_saw_no_word_has_no_link() -> None:
    looked = attention_map([0.0, 0.0, 1.0], [0.3, 0.7, 0.0])
    assert argmax_links(looked, [(0,), (1,), ()]) == {(1, 1)}
    assert argmax_links_of_sources(looked, [(0,), (1,), ()]) == {(0, 1), (1, 1)}


@given(st.integers(0, 2**31), st.integers(1, 7), st.integers(1, 7), st.booleans(), st.booleans())
def test_links_made_in_blocks_are_those_of_the_whole_map(seed, queries, keys, reads, tiny) -> None:
    torch.manual_seed(seed)
    looked = FactoredAttentionMap(
        torch.randn(1, 2, queries, 4), torch.randn(1, 2, keys, 4), 1.0, everywhere, 0
    )
    kept = [i for i in range(keys) if torch.rand(()) > 0.3]
    sources = [(i,) if i in kept else () for i in range(keys)]
    whole = looked.weights()[0].mean(0)
    shift = int(reads)
    tokens = range(queries - shift)
    step = "reads" if reads else "writes"
    with pytest.MonkeyPatch.context() as patch:
        if tiny:
            patch.setattr("attlas.analysis.alignment._AT_ONCE", 1)
        forward = argmax_links(looked, sources, step=step)
        backward = argmax_links_of_sources(looked, sources, step=step)
        above = threshold_links(looked, 0.25, sources, step=step)
    rows = {t: {i: float(whole[t + shift, i]) for i in kept} for t in tokens}
    assert forward == {(max(row, key=row.__getitem__), t) for t, row in rows.items() if row}
    assert above == {
        (i, t) for t, row in rows.items() for i, weight in row.items() if weight > 0.25
    }
    if rows:
        assert backward == {(i, max(rows, key=lambda t: rows[t][i])) for i in kept}


def test_what_does_not_fit_says_why() -> None:
    looked = attention_map([0.5, 0.5], [0.5, 0.5])
    with pytest.raises(AttlasError, match="target tokens that 2 queries read; got 2 tokens"):
        argmax_links(looked, targets=[(0,), (1,)], step="reads")
    with pytest.raises(AttlasError, match="target tokens that 2 queries write; got 3 tokens"):
        argmax_links(looked, targets=[(0,), (1,), ()])
    with pytest.raises(AttlasError, match="words of each of 2 source tokens; got those of 1"):
        argmax_links(looked, [(0,)])
    with pytest.raises(AttlasError, match=r"one pair of texts, \(1, heads, queries, keys\) each"):
        argmax_links(DenseAttentionMap(torch.ones(2, 1, 1, 1)))
    with pytest.raises(AttlasError, match=r"got \(1, 1, 2, 2\), \(1, 1, 1, 2\)"):
        argmax_links([looked, attention_map([0.5, 0.5])])
    with pytest.raises(AttlasError, match="got none"):
        argmax_links([])
    with pytest.raises(AttlasError, match="a threshold from 0 to below 1; got 1"):
        threshold_links(looked, 1.0)

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attlas.patterns import both, causal, everywhere, window
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, observe
from attlas.recording.generation import append_cross_attention_step, append_self_attention_step


def whole(batch=2, heads=2, places=7, pattern=causal, token_mask=None):
    query, keys = torch.randn(2, batch, heads, places, 4)
    return FactoredAttentionMap(query, keys, 0.5, pattern, 0, token_mask)


def part(attention_map, start, stop, back=None):
    """The call that asks for these queries with a cache, of the last `back` keys."""
    oldest = 0 if back is None else max(0, stop - back)
    token_mask = (
        None if attention_map.token_mask is None else attention_map.token_mask[:, oldest:stop]
    )
    single = stop - start == 1
    return FactoredAttentionMap(
        attention_map.query[:, :, start:stop],
        attention_map.keys[:, :, oldest:stop],
        attention_map.scale,
        everywhere if single else causal,
        start - oldest,
        token_mask,
    )


@given(st.lists(st.integers(1, 3), min_size=1, max_size=5), st.booleans(), st.integers(0, 2**31))
def test_the_steps_of_a_generation_are_one_causal_map(steps, padded, seed):
    torch.manual_seed(seed)
    places = sum(steps)
    token_mask = torch.ones(2, places, dtype=torch.bool)
    token_mask[0, 0] = places == 1
    attention_map = whole(places=places, token_mask=token_mask if padded else None)
    together, stop = part(attention_map, 0, steps[0]), steps[0]
    for step in steps[1:]:
        together = append_self_attention_step(
            together, part(attention_map, stop, stop + step)
        ).attention_map
        stop += step
        assert together is not None
    torch.testing.assert_close(together.weights(), attention_map.weights())
    assert together.pattern == causal or places == 1


def test_a_cache_of_a_window_that_drops_the_oldest_makes_a_windowed_map():
    attention_map = whole(places=9, pattern=both(causal, window(3)))
    together = part(attention_map, 0, 2)
    for place in range(2, 9):
        together = append_self_attention_step(
            together, part(attention_map, place, place + 1, back=4)
        ).attention_map
    assert together.pattern == both(causal, window(3))
    torch.testing.assert_close(together.weights(), attention_map.weights())


@pytest.mark.parametrize("padded", [1, 2, 4])
def test_a_cache_of_a_window_that_drops_the_oldest_may_hold_padding(padded):
    token_mask = torch.arange(9) >= torch.tensor([[padded], [0]])
    attention_map = whole(places=9, pattern=both(causal, window(3)), token_mask=token_mask)
    together = part(attention_map, 0, 2)
    for place in range(2, 9):
        together = append_self_attention_step(
            together, part(attention_map, place, place + 1, back=4)
        ).attention_map
    assert together.pattern == both(causal, window(3))
    torch.testing.assert_close(together.weights(), attention_map.weights())


def seen_by_the_last(attention_map, stop, radius):
    """The call of one query with a cache of all keys, of which it sees the nearest alone."""
    token_mask = (
        torch.ones(2, stop, dtype=torch.bool)
        if attention_map.token_mask is None
        else attention_map.token_mask[:, :stop]
    )
    token_mask = token_mask & (torch.arange(stop) >= stop - 1 - radius)
    token_mask = None if bool(token_mask.all()) else token_mask
    query, keys = attention_map.query[:, :, stop - 1 : stop], attention_map.keys[:, :, :stop]
    return FactoredAttentionMap(query, keys, attention_map.scale, everywhere, stop - 1, token_mask)


@pytest.mark.parametrize("first", [2, 6])
@pytest.mark.parametrize("padded", [0, 1, 3])
def test_a_cache_that_keeps_more_than_its_window_shows_makes_a_windowed_map(first, padded):
    windowed = both(causal, window(3))
    token_mask = torch.arange(9) >= torch.tensor([[padded], [0]])
    attention_map = whole(places=9, pattern=windowed, token_mask=token_mask if padded else None)
    pattern = windowed if first > 4 else causal
    padding = None if attention_map.token_mask is None else attention_map.token_mask[:, :first]
    query, keys = attention_map.query[:, :, :first], attention_map.keys[:, :, :first]
    together = FactoredAttentionMap(query, keys, 0.5, pattern, 0, padding)
    for stop in range(first + 1, 10):
        together = append_self_attention_step(
            together, seen_by_the_last(attention_map, stop, 3)
        ).attention_map
    assert together.pattern == windowed
    torch.testing.assert_close(together.weights(), attention_map.weights())


def test_a_step_that_sees_less_than_those_before_is_spelled_out():
    attention_map = whole(places=8)
    step = seen_by_the_last(attention_map, 8, 3)
    together = append_self_attention_step(part(attention_map, 0, 7), step).attention_map
    torch.testing.assert_close(together.weights()[:, :, :7], attention_map.weights()[:, :, :7])
    torch.testing.assert_close(together.weights()[:, :, 7:], step.weights())
    assert together.causal


@pytest.mark.parametrize("padded", [False, True])
def test_room_that_a_cache_has_not_filled_is_no_part_of_the_map(padded):
    token_mask = torch.ones(2, 6, dtype=torch.bool)
    token_mask[1, 0] = not padded
    attention_map = whole(places=6, token_mask=token_mask if padded else None)
    room = torch.zeros(2, 2, 3, 4)
    before = part(attention_map, 0, 4)
    keys = torch.cat((before.keys, room), 2)
    before = FactoredAttentionMap(
        before.query, keys, 0.5, causal, 0, torch.cat((token_mask, token_mask[:, 5:]), 1)
    )
    for place in (4, 5):
        keys = torch.cat((attention_map.keys[:, :, : place + 1], room), 2)[:, :, :7]
        seen = (torch.arange(7) <= place) & torch.cat((token_mask, token_mask[:, 5:]), 1)
        step = FactoredAttentionMap(
            attention_map.query[:, :, place : place + 1], keys, 0.5, everywhere, 6, seen
        )
        before = append_self_attention_step(before, step).attention_map
    torch.testing.assert_close(before.weights(), attention_map.weights())


def test_queries_go_with_the_row_from_which_a_beam_went_on():
    attention_map = whole(batch=3, places=4)
    before = part(attention_map, 0, 3)
    parents = torch.tensor([2, 0, 0])
    moved = attention_map.select(parents)
    together = append_self_attention_step(before, part(moved, 3, 4)).attention_map
    torch.testing.assert_close(together.weights(), moved.weights())


def test_a_decoder_that_asks_the_same_source_again_makes_one_map():
    query, keys = torch.randn(2, 2, 5, 4), torch.randn(2, 2, 6, 4)
    token_mask = torch.arange(6) < torch.tensor([[6], [4]])
    attention_map = FactoredAttentionMap(query, keys, 0.5, everywhere, 0, token_mask)
    steps = [
        FactoredAttentionMap(query[:, :, i : i + 1], keys, 0.5, everywhere, 5, token_mask)
        for i in range(5)
    ]
    together = steps[0]
    for step in steps[1:]:
        together = append_cross_attention_step(together, step)
    torch.testing.assert_close(together.weights(), attention_map.weights())


@pytest.mark.parametrize("what", ["scale", "keys", "heads", "gap", "dense"])
def test_what_does_not_go_on_is_left_apart(what):
    attention_map = whole(places=6)
    before, step = part(attention_map, 0, 3), part(attention_map, 3, 4)
    if what == "scale":
        step = FactoredAttentionMap(step.query, step.keys, 0.7, everywhere, 3)
    elif what == "keys":
        step = part(whole(places=6), 3, 4)
    elif what == "heads":
        step = step.select_heads(torch.tensor([0]))
    elif what == "gap":
        step = part(attention_map, 4, 5)
    else:
        before = DenseAttentionMap(before.weights())
    assert append_self_attention_step(before, step) is None
    assert append_cross_attention_step(before, step) is None


def test_what_was_read_before_stays_as_it_was():
    attention_map = whole(places=5)
    before = part(attention_map, 0, 4)
    weights = before.weights()
    assert append_self_attention_step(before, part(attention_map, 4, 5)) is not None
    assert torch.equal(before.weights(), weights)


def test_a_step_that_takes_other_slots_for_padding_is_spelled_out():
    attention_map = whole(places=4)
    before, step = part(attention_map, 0, 3), part(attention_map, 3, 4)
    token_mask = torch.tensor([[True, False, True, True], [True, True, True, True]])
    step = FactoredAttentionMap(step.query, step.keys, 0.5, everywhere, 3, token_mask)
    together = append_self_attention_step(before, step).attention_map
    torch.testing.assert_close(together.weights()[:, :, :3, :3], before.weights())
    torch.testing.assert_close(together.weights()[:, :, 3:], step.weights())


def test_a_prefix_that_sees_all_of_itself_goes_on_as_a_mask():
    attention_map = whole(places=4)
    before = FactoredAttentionMap(
        attention_map.query[:, :, :3], attention_map.keys[:, :, :3], 0.5, everywhere, 0
    )
    together = append_self_attention_step(before, part(attention_map, 3, 4)).attention_map
    torch.testing.assert_close(together.weights()[:, :, :3, :3], before.weights())
    torch.testing.assert_close(together.weights()[:, :, 3:], attention_map.weights()[:, :, 3:])
    assert not together.causal


@pytest.mark.parametrize("kept", [4, 5, 6])
def test_queries_that_a_cropped_cache_has_dropped_are_no_part_of_the_map(kept):
    attention_map, other = whole(places=8), whole(places=8)
    query = torch.cat((attention_map.query[:, :, :kept], other.query[:, :, kept:]), 2)
    keys = torch.cat((attention_map.keys[:, :, :kept], other.keys[:, :, kept:]), 2)
    right = FactoredAttentionMap(query, keys, 0.5, causal, 0)
    before = append_self_attention_step(
        part(attention_map, 0, 3), part(attention_map, 3, 7)
    ).attention_map
    together = append_self_attention_step(before, part(right, kept, 8)).attention_map
    torch.testing.assert_close(together.weights(), right.weights())


class Filling(nn.Module):
    """Fills a room that it has made for itself, place by place, or round and round."""

    def __init__(self, room, *, masked):
        super().__init__()
        self.room, self.masked, self.filled = torch.zeros(2, 2, room, 8), masked, 0

    def forward(self, x):
        heads, room = x.unflatten(-1, (2, 8)).transpose(1, 2), self.room.shape[2]
        places = torch.arange(self.filled, self.filled + x.shape[1])
        self.filled += x.shape[1]
        self.room[:, :, places % room] = heads
        keys, mask = self.room, torch.arange(room) <= places[:, None]
        if not self.masked:
            keys, mask = keys[:, :, : self.filled], None
        return F.scaled_dot_product_attention(heads, keys, keys, attn_mask=mask)


@pytest.mark.parametrize("counts", [[1] * 6, [3, 1, 1, 1], [3, 2, 1]])
def test_a_room_that_a_layer_fills_by_hand_becomes_one_map(counts):
    x = torch.randn(2, 6, 16)
    model = Filling(9, masked=True)
    with torch.no_grad(), observe(model) as trace:
        for part in x.split(counts, 1):
            model(part)
    heads = x.unflatten(-1, (2, 8)).transpose(1, 2).double()
    hidden = torch.ones(6, 6, dtype=torch.bool).triu(1)
    expected = (heads @ heads.mT / 8**0.5).masked_fill(hidden, -torch.inf).softmax(-1)
    torch.testing.assert_close(trace[""].weights().double(), expected, atol=1e-6, rtol=1e-5)
    assert trace[""].position == 0


class Sliding(nn.Module):
    """Keeps the keys that its window of four can still see, and drops the others before it looks:
    of the first call they lie in what one projection has made."""

    WINDOW = 4

    def __init__(self):
        super().__init__()
        self.projection, self.keys = nn.Linear(16, 32), None

    def in_heads(self, x):
        return self.projection(x).unflatten(-1, (2, 2, 8)).permute(2, 0, 3, 1, 4)

    def forward(self, x):
        query, new = self.in_heads(x)
        keys = new if self.keys is None else torch.cat((self.keys, new), 2)
        self.keys = keys[:, :, 1 - self.WINDOW :]
        key = torch.arange(keys.shape[2])
        place = key[-x.shape[1] :, None]
        mask = (key <= place) & (key > place - self.WINDOW)
        return F.scaled_dot_product_attention(query, keys, keys, attn_mask=mask)


@pytest.mark.parametrize("counts", [[1] * 9, [3] + [1] * 6, [4] + [1] * 5, [7, 1, 1], [5, 2, 2]])
def test_a_window_that_a_layer_keeps_by_hand_becomes_one_map(counts):
    model, x = Sliding(), torch.randn(2, 9, 16)
    with torch.no_grad(), observe(model) as trace:
        for part in x.split(counts, 1):
            model(part)
        query, keys = model.in_heads(x).double()
    behind = torch.arange(9)[:, None] - torch.arange(9)
    scores = (query @ keys.mT / 8**0.5).masked_fill((behind < 0) | (behind > 3), -torch.inf)
    expected = scores.softmax(-1)
    torch.testing.assert_close(trace[""].weights().double(), expected, atol=1e-6, rtol=1e-5)
    assert trace[""].position == 0
    assert trace.causal("") is True


def test_nobody_knows_where_queries_stand_in_a_room_that_is_filled_round_and_round():
    model = Filling(4, masked=False)
    with torch.no_grad(), observe(model) as trace:
        for part in torch.randn(2, 9, 16).split(1, 1):
            model(part)
    begin, *later = trace.calls("")
    assert begin.shape[2:] == (4, 4)  # until it was full
    assert begin.position == 0
    assert [(attention_map.shape[2:], attention_map.position) for attention_map in later] == [
        ((1, 4), None)
    ] * 5

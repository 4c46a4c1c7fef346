"""Where queries stand among the keys: known where something says it, and else nobody's guess."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attlas.analysis.description import describe
from attlas.analysis.roles import roles
from attlas.analysis.rollout import rollout
from attlas.analysis.syntax import between_words
from attlas.errors import AttlasError
from attlas.patterns import causal, everywhere
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace, observe
from attlas.recording.maps.statistics import NAMES, PLACED
from support.written_attention import Calling, vectors

LENGTH, WIDTH = 6, 8


class Looking(nn.Module):
    """Looks in a way that it is told, with its own text, by the fused kernel or written out."""

    def __init__(self, fused):
        super().__init__()
        self.fused = fused

    def look(self, query, keys, mask=None):
        if self.fused:
            return F.scaled_dot_product_attention(query, keys, keys, attn_mask=mask)
        scores = query @ keys.mT / query.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(-1) @ keys


class ClassToken(Looking):
    """CaiT: one query, the first of the keys."""

    def forward(self, x):
        return self.look(x[:, None, :1], x[:, None])


class LastToken(Looking):
    """A last layer of which only one output is needed."""

    def forward(self, x):
        return self.look(x[:, None, 2:3], x[:, None])


class Chunks(Looking):
    """Queries a few at a time, to save memory."""

    def forward(self, x):
        return torch.cat([self.look(part[:, None], x[:, None]) for part in x.split(2, 1)], 2)


class Padded(Looking):
    """A class token beside padding on the right."""

    def forward(self, x):
        mask = (torch.arange(x.shape[1]) < 4).expand(1, 1, 1, -1)
        return self.look(x[:, None, :1], x[:, None], mask)


class Blocks(Looking):
    """BigBird: each block of queries looks at the first block and at the block before its own."""

    def forward(self, x):
        blocks = x.unflatten(1, (-1, 2))
        keys = torch.cat((blocks[:, :1].expand_as(blocks), blocks.roll(1, 1)), 2)
        return self.look(blocks, keys)


class Rolled(Looking):
    """Each block looks at the block before it, which has as many keys as there are queries."""

    def forward(self, x):
        blocks = x.unflatten(1, (-1, 2))
        return self.look(blocks, blocks.roll(1, 1))


class Strided(Looking):
    """PVT, SegFormer: fewer keys than queries."""

    def forward(self, x):
        return self.look(x[:, None], F.avg_pool1d(x.mT, 2).mT[:, None])


class Probes(Looking):
    """Perceiver: learned queries."""

    def __init__(self, fused, count=2):
        super().__init__(fused)
        self.probe = nn.Parameter(torch.randn(1, count, WIDTH))

    def forward(self, x):
        return self.look(self.probe.expand(len(x), -1, -1)[:, None], x[:, None])


class Pooling(nn.Module):
    """SigLIP: one learned query asks `nn.MultiheadAttention`."""

    def __init__(self, _):
        super().__init__()
        self.probe = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x):
        return self.attention(self.probe.expand(len(x), -1, -1), x, x)


class Latents(nn.Module):
    """Perceiver: a module that is given learned queries as one of two texts."""

    class Crossing(Looking):
        def __init__(self, fused):
            super().__init__(fused)
            self.q_proj, self.of_keys = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, hidden_states, inputs):
            return self.look(self.q_proj(hidden_states)[:, None], self.of_keys(inputs)[:, None])

    def __init__(self, fused):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(3, WIDTH))
        self.norm, self.crossing = nn.LayerNorm(WIDTH), Latents.Crossing(fused)

    def forward(self, x):
        return self.crossing(self.norm(self.latents.expand(len(x), -1, -1)), x)


class Moved(Looking):
    """As many keys as queries, of the same text, in another order."""

    def __init__(self, fused):
        super().__init__(fused)
        self.q_proj, self.of_keys = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.look(self.q_proj(x)[:, None], self.move(self.of_keys(x))[:, None])


class Flipped(Moved):
    def move(self, x):
        return x.flip(1)


class Permuted(Moved):
    def move(self, x):
        return x[:, torch.tensor([1, 0, 2, 5, 4, 3])]


class Gathered(Moved):
    def move(self, x):
        chosen = x.sum(-1).argsort(1)
        return x.gather(1, chosen[..., None].expand_as(x))


class Shifted(Moved):
    def move(self, x):
        return x.roll(1, 1)


UNKNOWN_ORDER = [Flipped, Permuted, Gathered, Shifted]
UNKNOWN = [ClassToken, LastToken, Chunks, Padded, Blocks, Rolled, Strided, Probes, Pooling, Latents]
UNKNOWN += UNKNOWN_ORDER


def seen_by(model, *given):
    with torch.no_grad(), observe(model) as trace:
        model(*given)
    return trace


@pytest.mark.parametrize("kind", UNKNOWN)
@pytest.mark.parametrize("fused", [False, True])
def test_where_nothing_says_where_queries_stand_nobody_pretends_to_know(kind, fused):
    torch.manual_seed(0)
    trace = seen_by(kind(fused), torch.randn(2, LENGTH, WIDTH))
    assert trace
    for layer in trace:
        assert trace.causal(layer) is not True
        for attention_map in trace.calls(layer):
            assert attention_map.position is None
            for name in PLACED:
                with pytest.raises(AttlasError, match="positions of its queries"):
                    getattr(attention_map, name)()
                with pytest.raises(AttlasError, match=name):
                    attention_map.summary("entropy", name)
            found = attention_map.summary()
            assert [name for name in NAMES if getattr(found, name) is None] == [
                *PLACED,
                "gini",
            ]
            torch.testing.assert_close(
                found.entropy, DenseAttentionMap(attention_map.weights()).entropy()
            )
            assert attention_map.topk(2)[0].shape == (*attention_map.shape[:3], 2)
            known = replace(attention_map, query_offset=1)  # whoever knows better says so
            places = 1 + torch.arange(attention_map.shape[2])
            far = (places[:, None] - torch.arange(attention_map.shape[3])).abs()
            torch.testing.assert_close(known.distance(), (known.weights() * far).sum(-1))


class Own(Looking):
    def forward(self, x):
        return self.look(x[:, None], x[:, None])


class Causal(Looking):
    def forward(self, x):
        return self.look(x[:, None], x[:, None], causal.mask(x.shape[1], x.shape[1])[None, None])


class Spelled(Looking):
    """Three queries that stand at the third key and on, by their mask."""

    def forward(self, x):
        mask = causal.mask(3, LENGTH, 2)[None, None]
        return self.look(x[:, None, 2:5], x[:, None], mask)


class Windows(nn.Module):
    """Swin: a module that is given windows looks at its own places."""

    def __init__(self, fused):
        super().__init__()
        self.attention = Own(fused)

    def forward(self, x):
        return self.attention(x.unflatten(1, (-1, 3)).flatten(0, 1))


class Turned(Looking):
    """Rotary positions, shared keys, and one order for queries and keys that is not the text's."""

    def forward(self, x):
        x = x[:, torch.arange(LENGTH).flip(0)]
        angles = torch.rand(LENGTH, WIDTH)[torch.arange(LENGTH)]
        turned = x * angles.cos() + torch.cat((-x[..., 4:], x[..., :4]), -1) * angles.sin()
        keys = turned[:, :, None, :].expand(-1, -1, 2, -1).flatten(2)[..., :WIDTH]
        return self.look(turned[:, None], keys[:, None])


CHOICES = {
    "whole": lambda x: x,
    "from": lambda x: x[:, 2:],
    "up to": lambda x: x[:, :4],
    "middle": lambda x: x[:, 1:5],
    "one": lambda x: x[:, 3:4],
    "strided": lambda x: x[:, ::2],
    "flipped": lambda x: x.flip(1),
    "rolled": lambda x: x.roll(2, 1),
    "turned": lambda x: torch.cat((x[:, 3:], x[:, :3]), 1),
    "holes": lambda x: torch.cat((x[:, :2], x[:, 4:]), 1),
    "permuted": lambda x: x[:, torch.tensor([2, 0, 1, 4, 5, 3])],
    "chosen": lambda x: x.index_select(1, torch.tensor([0, 5, 3])),
}


@given(
    st.sampled_from(sorted(CHOICES)),
    st.sampled_from(sorted(CHOICES)),
    st.booleans(),
    st.booleans(),
    st.integers(1, 3),
)
def test_a_place_that_is_known_is_right_whatever_was_done_to_queries_and_keys(
    asking, requested, fused, projected, batch
):
    """Of the places of a text, each its own number, those that ask and those that are asked."""
    torch.manual_seed(0)

    class Choosing(Looking):
        def __init__(self):
            super().__init__(fused)
            self.q_proj, self.of_keys = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            query, keys = (self.q_proj(x), self.of_keys(x)) if projected else (x, x)
            return self.look(CHOICES[asking](query)[:, None], CHOICES[requested](keys)[:, None])

    trace = seen_by(Choosing(), torch.randn(batch, LENGTH, WIDTH))
    first = trace[""].position
    numbers = torch.arange(LENGTH)[None]
    ask, slots = (CHOICES[one](numbers)[0] for one in (asking, requested))
    if first is not None:
        assert torch.equal(slots[first : first + len(ask)], ask)
        later = torch.ones(len(ask), len(slots)).triu(first + 1).bool()
        assert trace.causal("") is not bool(later.any())
    if asking == requested == "whole":
        assert first == 0


class Given(Looking):
    """Queries and keys as they come."""

    def forward(self, query, keys):
        return self.look(query, keys)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(
    ("kind", "first"), [(Own, 0), (Causal, 0), (Spelled, 2), (Windows, 0), (Turned, 0), (Given, 0)]
)
def test_where_something_says_where_queries_stand_it_is_known(kind, first, fused):
    torch.manual_seed(0)
    x = torch.randn(2, LENGTH, WIDTH)
    trace = seen_by(kind(fused), *([x[:, None]] * 2 if kind is Given else [x]))
    (layer,) = trace
    attention_map = trace[layer]
    assert attention_map.position == first
    itself = attention_map.weights().diagonal(first, 2, 3)
    torch.testing.assert_close(attention_map.self_weight(), itself)
    assert trace.causal(layer) is (kind in (Causal, Spelled))


@pytest.mark.parametrize("fused", [False, True])
def test_texts_one_behind_the_other_stand_at_their_own_slots(fused):
    class Both(Looking):
        def forward(self, x, other):
            both = torch.cat((other, x), 1)[:, None]
            return self.look(both, both)

    trace = seen_by(Both(fused), torch.randn(1, LENGTH, WIDTH), torch.randn(1, 3, WIDTH))
    assert trace[""].position == 0


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("steps", [[3, 1, 1, 1], [1, 1, 1], [2, 2, 2]])
def test_keys_that_grow_by_as_many_as_there_are_queries_say_where_these_stand(fused, steps):
    looking = Looking(fused)

    def step(query, keys):
        mask = causal.mask(query.shape[2], keys.shape[2])[None, None]
        return looking.look(query, keys, mask if query.shape[2] > 1 else None)

    model = Calling(step)
    q, k = vectors(1, 2, sum(steps), 4, count=2)
    with torch.no_grad(), observe(model) as trace:
        end = 0
        for count in steps:
            end += count
            model(q[:, :, end - count : end], k[:, :, :end])
    assert trace[""].position == 0
    assert trace.causal("") is True
    assert trace[""].shape[2:] == (sum(steps), sum(steps))


@pytest.mark.parametrize("fused", [False, True])
def test_steps_that_begin_in_the_middle_are_the_newest_of_keys_that_grow(fused):
    model = Given(fused)
    q, k = vectors(1, 2, 6, 4, count=2)
    with torch.no_grad(), observe(model) as trace:
        for end in (4, 5, 6):
            model(q[:, :, end - 1 : end], k[:, :, :end])
    assert trace[""].position == 3
    torch.testing.assert_close(trace[""].self_weight(), trace[""].weights().diagonal(3, 2, 3))


def test_a_class_token_that_is_asked_again_and_again_never_comes_to_stand_anywhere():
    model = ClassToken(True)
    with torch.no_grad(), observe(model) as trace:
        for _ in range(3):
            model(torch.randn(1, LENGTH, WIDTH))
    assert [attention_map.position for attention_map in trace.calls("")] == [None] * 3


def class_trace():
    torch.manual_seed(0)
    return seen_by(Chunks(True), torch.randn(2, LENGTH, WIDTH))


def test_roles_of_ones_own_place_are_not_shown_by_who_stands_nowhere():
    table = roles(class_trace())
    for layer in table.layers:
        for role in table.of_head(layer, 0):
            needs_place = role.name in ("previous", "next", "itself", "local", "positional")
            assert (role.score != role.score) >= needs_place
        assert table.role(layer, 0, "first").score > 0


def test_words_say_nothing_of_places_that_nobody_knows():
    reported = describe(class_trace().calls("")[0], row=0, head=0, cross_attention=False)
    assert "own place" not in reported
    assert "back" not in reported.replace("backward", "")


def test_what_counts_on_places_refuses_a_square_map_that_has_none():
    trace = seen_by(Rolled(True), torch.randn(1, LENGTH, WIDTH))
    attention_map = trace[""].at(0).select_heads(torch.tensor([0]))
    with pytest.raises(AttlasError, match="its own key"):
        rollout([attention_map])
    with pytest.raises(AttlasError, match="its own key"):
        list(between_words(attention_map, torch.arange(2), 2))


def test_unknown_places_are_saved_and_read_again(tmp_path):
    trace = Trace()
    weights = torch.rand(1, 1, 2, 5)
    query, keys = torch.randn(1, 1, 2, 4), torch.randn(1, 1, 5, 4)
    trace.record("dense", DenseAttentionMap(weights))
    trace.record("given", DenseAttentionMap(weights, query_offset=3))
    trace.record("square", DenseAttentionMap(torch.rand(1, 1, 3, 3)))
    trace.record("nowhere", DenseAttentionMap(torch.rand(1, 1, 3, 3), query_offset=None))
    trace.record("factored", FactoredAttentionMap(query, keys, 1.0, everywhere, None))
    trace.save(tmp_path / "trace.safetensors")
    again = Trace.load(tmp_path / "trace.safetensors")
    expected = {"dense": None, "given": 3, "square": 0, "nowhere": None, "factored": None}
    assert {layer: again[layer].position for layer in again} == expected
    assert again.causal("factored") is None


def test_a_pattern_that_counts_from_nowhere_is_no_reading(tmp_path):
    trace = Trace()
    query, keys = torch.randn(1, 1, 2, 4), torch.randn(1, 1, 5, 4)
    trace.record("a", FactoredAttentionMap(query, keys, 1.0, causal, None))
    with pytest.raises(AttlasError, match="from which its pattern counts"):
        trace.save(tmp_path / "trace.safetensors")


def test_one_call_that_looks_ahead_is_enough_and_one_of_which_nobody_knows_is_not():
    eye, ahead = torch.eye(3)[None, None], torch.eye(3).roll(1, -1)[None, None]
    for others, causal_ in (([eye], True), ([eye, None], None), ([ahead, None], False)):
        trace = Trace()
        for one in others:
            trace.record(
                "a",
                DenseAttentionMap(eye if one is None else one, None, None if one is None else 0),
            )
        assert trace.causal("a") is causal_


def test_a_query_that_is_given_by_itself_stands_nowhere():
    """What calls a function with its own tensors still knows nothing of their places."""
    query, keys = vectors(1, 1, LENGTH, 4, count=2)
    trace = seen_by(Calling(F.scaled_dot_product_attention), query[:, :, :1], keys, keys)
    assert trace[""].position is None


def windowed(ahead, back):
    places = torch.arange(LENGTH)
    apart = places - places[:, None]
    return (apart <= ahead) & (apart >= -back)


LOOKING_AHEAD = {  # of queries from a place on: the keys that they are given, and what they see
    "a window": lambda first: (slice(0, LENGTH), windowed(1, 1)[first : first + 2]),
    "one more than causal": lambda first: (slice(0, LENGTH), windowed(1, 9)[first : first + 2]),
    "keys up to the next": lambda first: (slice(0, first + 3), None),
    "keys around": lambda first: (slice(max(0, first - 2), first + 4), None),
}


class Parts(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way = way

    def forward(self, text):
        for first in range(0, LENGTH, 2):
            slots, mask = LOOKING_AHEAD[self.way](first)
            asking, requested = text[:, None, first : first + 2], text[:, None, slots]
            F.scaled_dot_product_attention(asking, requested, requested, attn_mask=mask)
        return text


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("way", LOOKING_AHEAD)
def test_queries_of_a_part_that_looks_ahead_are_not_taken_for_later_ones_that_look_back(way, batch):
    trace = seen_by(Parts(way), vectors(batch, LENGTH, WIDTH, count=1)[0])
    assert trace.causal("") is not True
    for first, attention_map in zip(range(0, LENGTH, 2), trace.calls(""), strict=True):
        slots, _ = LOOKING_AHEAD[way](first)
        assert attention_map.position in (None, first - slots.start)


def test_queries_of_a_part_stand_where_a_mask_says_it_that_knows_where_they_were_taken_from():
    class Causal(nn.Module):
        def forward(self, text):
            text = text[:, None]
            for first in (0, 2, 4):
                asking, mask = text[:, :, first : first + 2], causal.mask(2, LENGTH, first)
                F.scaled_dot_product_attention(asking, text, text, attn_mask=mask)
            return text

    trace = seen_by(Causal(), vectors(2, LENGTH, WIDTH, count=1)[0])
    assert trace[""].shape[2:] == (LENGTH, LENGTH)
    assert trace[""].position == 0
    assert trace.causal("") is True


MOVED = {
    "padded in front": lambda x: F.pad(x, (0, 0, 1, 0))[:, :-1],
    "behind zeros": lambda x: torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1),
    "every second, the others": lambda x: x[:, 1::2],
}


@pytest.mark.parametrize("way", MOVED)
def test_nobody_knows_where_queries_stand_among_keys_that_were_shifted(way):
    class Shifted(nn.Module):
        def forward(self, x):
            keys = MOVED[way](x)
            query = x[:, : 2 * keys.shape[1] : LENGTH // keys.shape[1]]
            return F.scaled_dot_product_attention(query[:, None], keys[:, None], keys[:, None])

    trace = seen_by(Shifted(), vectors(2, LENGTH, WIDTH, count=1)[0])
    assert trace[""].position is None
    assert trace.causal("") is None

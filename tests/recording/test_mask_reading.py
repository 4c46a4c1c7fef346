import weakref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.patterns import both, causal, everywhere, window
from attlas.recording.torch_functions.masks import MaskSpecCache, mask_spec_of
from attlas.recording.torch_functions.tensors import Versions

PATTERNS = [everywhere, causal, both(causal, window(2)), window(1), window(3)]


def mask_of(spec, batch, queries, keys):
    """The mask that a sight stands for."""
    allowed = spec.pattern.mask(queries, keys, spec.query_offset)[None, None].expand(
        batch, 1, -1, -1
    )
    if spec.token_mask is not None:
        allowed = allowed & spec.token_mask[:, None, None]
    if spec.bias is None:
        return allowed
    assert spec.pattern == everywhere
    assert spec.token_mask is None
    return spec.bias.expand(batch, 1, queries, keys)


@given(
    st.sampled_from(PATTERNS),
    st.integers(1, 7),
    st.integers(0, 5),
    st.lists(st.integers(0, 6), min_size=1, max_size=3),
    st.booleans(),
)
def test_a_pattern_with_padding_is_found_in_its_mask(pattern, queries, earlier, padding, left):
    keys, batch = queries + earlier, len(padding)
    place = torch.arange(keys)
    token_mask = torch.stack([place >= n if left else place < max(1, keys - n) for n in padding])
    mask = pattern.mask(queries, keys)[None, None] & token_mask[:, None, None]
    spec = mask_spec_of(mask, batch, queries, keys)
    assert torch.equal(mask_of(spec, batch, queries, keys), mask)
    if not left and (min(padding) == 0 or earlier == 0):
        assert spec.bias is None
    if spec.query_offset is not None:
        assert spec.query_offset >= 0
        assert spec.query_offset == 0 or earlier
    assert (spec.query_offset is None) is (spec.pattern == everywhere)


@pytest.mark.parametrize("token_mask", [1, 2, 3, 10, 17, 31])
def test_short_texts_in_a_long_row_are_looked_at_from_the_first_slot_on(token_mask):
    kept = torch.arange(32) < token_mask
    mask = (causal.mask(32, 32) & kept)[None, None]
    spec = mask_spec_of(mask, 1, 32, 32)
    assert spec.bias is None
    assert (spec.pattern, spec.query_offset) == (
        (causal, 0) if token_mask > 1 else (everywhere, None)
    )
    assert torch.equal(spec.token_mask[0], kept)


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 6), st.integers(1, 6))
def test_any_mask_is_kept_exactly(seed, batch, queries, keys):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(batch, 1, queries, keys, generator=generator) > 0.4
    assert torch.equal(
        mask_of(mask_spec_of(mask, batch, queries, keys), batch, queries, keys), mask
    )


@pytest.mark.parametrize("hidden", [-torch.inf, torch.finfo(torch.float32).min])
def test_a_float_mask_of_zeros_and_the_least_number_is_a_pattern(hidden):
    mask = torch.full((5, 5), hidden).triu(1)
    spec = mask_spec_of(mask[None, None], 1, 5, 5)
    assert (spec.pattern, spec.query_offset, spec.bias) == (causal, 0, None)


def test_a_row_that_finite_numbers_hide_whole_keeps_the_mask_because_it_looks_everywhere():
    mask = torch.zeros(1, 1, 3, 3)
    mask[:, :, 0] = torch.finfo(torch.float32).min
    assert torch.equal(mask_spec_of(mask, 1, 3, 3).bias, mask)


def test_a_mask_that_weighs_what_it_shows_is_kept():
    mask = torch.randn(1, 2, 3, 3)
    assert torch.equal(mask_spec_of(mask, 1, 3, 3).bias, mask)


def test_the_same_mask_for_every_head_is_one():
    mask = torch.ones(2, 1, 4, 4, dtype=torch.bool).tril().expand(2, 3, 4, 4)
    for given_ in (mask, mask.contiguous()):
        assert mask_spec_of(given_, 2, 4, 4).pattern == causal


def test_slots_that_a_cache_has_not_filled_are_no_padding():
    mask = torch.ones(3, 3, dtype=torch.bool).tril()
    room = torch.nn.functional.pad(mask, (0, 4))[None, None]
    spec = mask_spec_of(room, 1, 3, 7)
    assert (spec.pattern, spec.query_offset, spec.token_mask) == (causal, 0, None)


def test_a_mask_that_was_changed_in_place_is_looked_at_again():
    mask_specs, mask = MaskSpecCache(Versions()), torch.ones(1, 1, 3, 3, dtype=torch.bool)
    assert mask_specs(mask, 1, 3, 3).pattern == everywhere
    mask &= causal.mask(3, 3)
    assert mask_specs(mask, 1, 3, 3).pattern == causal
    assert mask_specs(mask, 1, 3, 3) is mask_specs(mask, 1, 3, 3)
    with torch.inference_mode():
        inside = torch.ones(1, 1, 3, 3, dtype=torch.bool)
        assert mask_specs(inside, 1, 3, 3).pattern == everywhere
        inside &= causal.mask(3, 3)
        assert mask_specs(inside, 1, 3, 3).pattern == causal


def test_few_large_masks_are_kept_alive():
    """A model has one or two; each forward has others, and they grow with the length squared."""
    mask_specs, alive = MaskSpecCache(Versions()), []
    for _ in range(6):
        mask = torch.zeros(1, 1, 4200, 4200)
        alive.append(weakref.ref(mask))
        mask_specs(mask, 1, 4200, 4200)
        del mask
    assert sum(one() is not None for one in alive) <= 2


def test_a_mask_in_the_memory_of_an_array_is_looked_at_each_time():
    mask_specs, array = MaskSpecCache(Versions()), np.ones((1, 1, 3, 3), dtype=bool)
    assert mask_specs(torch.from_numpy(array), 1, 3, 3).pattern == everywhere
    array &= causal.mask(3, 3).numpy()
    assert mask_specs(torch.from_numpy(array), 1, 3, 3).pattern == causal

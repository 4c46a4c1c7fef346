"""Triton kernels of the statistics of softmax(cap(scale · q kᵀ) + bias), which hold no weights.

A first pass goes through the keys of a block of queries, as flash attention does. It keeps a
running maximum and rescales its sums where the maximum grows. It leaves the maximum m of the scores
of each row and 1 / l, with l = Σ exp(s − m). So a later pass has each weight as exp(s − m) / l.

Most blocks are fully visible: every query of the block sees every key. They come first, in a loop
without bounds checks. The blocks at the edges come in a second loop. Both loops are written once,
and Triton unrolls them (`EDGE` in `tl.static_range`).

A sum over queries has one program for each block of keys. No number is added to by two programs, so
results are the same bits each time.

The module is imported only where a kernel runs, and can be imported without Triton.
"""

from __future__ import annotations

from typing import Any, no_type_check

try:
    import triton
    import triton.language as tl
except ImportError:  # then nothing here is called
    triton = tl = None

# Numbers that change from map to map: a kernel is not compiled anew for each of them.
_CHANGING = (
    *("queries", "num_keys", "offset", "back", "ahead", "step"),
    *("near_back", "near_ahead", "near_step", "num_marks"),
    *("token_batch", "bias_batch", "bias_head"),
    *("shift", "most", "left", "right", "cell_rows", "cell_keys"),
)


def _jit(function: Any) -> Any:
    if triton is None:
        return function
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return triton.jit(function, do_not_specialize=[name for name in _CHANGING if name in names])


@_jit
@no_type_check
def trial_pass(numbers, SIZE: tl.constexpr):
    """0, 1, 2, …: does Triton work here?"""
    place = tl.arange(0, SIZE)
    tl.store(numbers + place, place)


@_jit
@no_type_check
def _load_rows(
    base, index, count, row_stride, dim_stride, head_dim,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, UPCAST: tl.constexpr, EDGE: tl.constexpr,
):  # fmt: skip
    """Vectors of queries or keys, (index, WIDTH); zeros outside.

    EDGE: an index may be outside. PADDED: WIDTH is above head_dim.
    """
    dim = tl.arange(0, WIDTH)
    places = base + index.to(tl.int64)[:, None] * row_stride + dim[None, :] * dim_stride
    if EDGE:
        inside = ((index >= 0) & (index < count))[:, None]
        if PADDED:
            inside = inside & (dim < head_dim)[None, :]
        vectors = tl.load(places, mask=inside, other=0.0)
    elif PADDED:
        vectors = tl.load(places, mask=(dim < head_dim)[None, :], other=0.0)
    else:
        vectors = tl.load(places)
    if UPCAST:
        vectors = vectors.to(tl.float32)
    return vectors


@_jit
@no_type_check
def _split(low, high, full_low, full_high, BLOCK: tl.constexpr):
    """Blocks from low to high: where those that are seen whole begin, how many these are, and how
    many others are before and after them.
    """
    is_empty = full_high <= full_low
    full_low = tl.where(is_empty, low, full_low)
    full_high = tl.where(is_empty, low, full_high)
    before = (full_low - low) // BLOCK
    after = tl.maximum(tl.cdiv(high - full_high, BLOCK), 0)
    return full_low, (full_high - full_low) // BLOCK, before, after


@_jit
@no_type_check
def _blocks_of_keys(
    first, queries, num_keys, offset, back, ahead, ROWS: tl.constexpr, KEYS: tl.constexpr
):
    """Keys that queries from `first` on see, in blocks: where they begin, and `_split` of them."""
    last = tl.minimum(first + ROWS, queries) - 1
    low = tl.maximum(offset + first - back, 0) // KEYS * KEYS
    high = tl.minimum(offset + last + 1 + ahead, num_keys)
    full_low = tl.cdiv(tl.maximum(offset + last - back, 0), KEYS) * KEYS
    full_high = tl.maximum(tl.minimum(offset + first + ahead + 1, num_keys), 0) // KEYS * KEYS
    full_low, full, before, after = _split(low, high, full_low, full_high, KEYS)
    return low, full_low, full, before, after


@_jit
@no_type_check
def _place(number, low, full_low, full, before, BLOCK: tl.constexpr, EDGE: tl.constexpr):
    """Where a block begins: of those that are seen whole, or of the others (`EDGE`)."""
    start = full_low + number * BLOCK
    if EDGE:
        behind = start + (full - before) * BLOCK
        start = tl.where(number < before, low + number * BLOCK, behind)
    return start


@_jit
@no_type_check
def _score(
    dots, query, key, tokens, bias, bias_row, bias_key, queries, num_keys,
    scale, softcap, offset, back, ahead, step,
    near_back, near_ahead, near_step, marks, num_marks,
    TOKENS: tl.constexpr, BIAS: tl.constexpr, SOFTCAP: tl.constexpr, STRIDED: tl.constexpr,
    MARKS: tl.constexpr, EDGE: tl.constexpr,
):  # fmt: skip
    """Scores of these products, and which of them are seen; `query` and `key` broadcast.

    EDGE: the block is at an edge: a query or a key may be outside, or beyond the band. If not, some
    of the other side may be outside all the same; nothing of them is kept.
    """
    scores = dots * scale
    if SOFTCAP:
        # tanh x = (1 − e) / (1 + e) with e = exp(−2 |x|), and its series where 1 − e loses digits.
        x = tl.abs(scores / softcap)
        e = tl.exp(-2.0 * x)
        z = x * x
        series = 17.0 / 315.0 + z * (-62.0 / 2835.0 + z * (1382.0 / 155925.0))
        series = x * (1.0 + z * (-1.0 / 3.0 + z * (2.0 / 15.0 - z * series)))
        capped = softcap * tl.where(x < 0.3, series, (1.0 - e) / (1.0 + e))
        scores = tl.where(scores < 0, -capped, capped)
    ahead_of_key = offset + query - key
    is_query = (query >= 0) & (query < queries)
    is_key = (key >= 0) & (key < num_keys)
    if EDGE:
        seen = is_query & is_key & (ahead_of_key <= back) & (ahead_of_key >= -ahead)
    else:
        seen = tl.full(dots.shape, 1, tl.int1)
    if STRIDED:
        seen = seen & (ahead_of_key % step == 0)
    if MARKS:
        near = (ahead_of_key <= near_back) & (ahead_of_key >= -near_ahead)
        near = near & (ahead_of_key % near_step == 0)
        place = offset + query
        of_query = tl.load(marks + place, mask=(place >= 0) & (place < num_marks), other=0)
        of_key = tl.load(marks + key, mask=(key >= 0) & (key < num_marks), other=0)
        seen = seen & (near | (of_query != 0) | (of_key != 0))
    if TOKENS:
        seen = seen & (tl.load(tokens + key, mask=is_key, other=0) != 0)
    if BIAS != "none":
        # A mask of places alone: with one of what is seen, each number would be a load of its own.
        places = bias + query.to(tl.int64) * bias_row + key.to(tl.int64) * bias_key
        added = tl.load(places, mask=is_query & is_key, other=0)
        if BIAS == "mask":
            seen = seen & (added != 0)
        else:
            number = added.to(tl.float32)
            scores = scores + number
            seen = seen & (number > float("-inf"))
    return scores, seen


@_jit
@no_type_check
def _weights(scores, seen, maximum, inverse):
    """exp(s − m) / l, and 0 where a key is not seen.

    By a rounding, s − m may come out above 0: the sum of a product may be in another order here.
    """
    centred = tl.where(seen, scores - tl.where(seen, maximum, 0.0), float("-inf"))
    return tl.minimum(tl.exp(centred), 1.0) * tl.where(seen, inverse, 0.0)


@_jit
@no_type_check
def row_pass(
    query, keys, tokens, bias,
    maxima, inverses, entropies, squares, distances, best_keys, counts,
    query_batch, query_head, query_row, query_dim, key_batch, key_head, key_row, key_dim,
    token_batch, bias_batch, bias_head, bias_row, bias_key,
    heads, group, queries, num_keys, head_dim, scale, softcap, offset, back, ahead, step,
    near_back, near_ahead, near_step, marks, num_marks,
    TOKENS: tl.constexpr, BIAS: tl.constexpr, SOFTCAP: tl.constexpr, STRIDED: tl.constexpr,
    MARKS: tl.constexpr,
    UPCAST: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    ENTROPY: tl.constexpr, SQUARES: tl.constexpr, DISTANCE: tl.constexpr, BEST: tl.constexpr,
    COUNT: tl.constexpr,
):  # fmt: skip
    """m, 1 / l, Σ p log p, Σ p², Σ p |i − j|, the greatest key and the number of seen keys.

    COUNT: write the number of seen keys into `counts`. If not, it is there.
    """
    blocks = tl.cdiv(queries, ROWS)
    of_head = (tl.program_id(0) // blocks).to(tl.int64)
    first = (blocks - 1 - tl.program_id(0) % blocks) * ROWS  # the longest rows of a causal map
    batch = of_head // heads
    head = of_head % heads
    row = first + tl.arange(0, ROWS)
    query_base = query + batch * query_batch + head * query_head
    key_base = keys + batch * key_batch + (head // group) * key_head
    bias_base = bias + batch * bias_batch + head * bias_head
    vectors = _load_rows(
        query_base, row, queries, query_row, query_dim, head_dim, WIDTH, PADDED, UPCAST, EDGE=True
    )
    maximum = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    of_logs = tl.zeros([ROWS], tl.float32)  # Σ exp(s − m) (s − m)
    of_squares = tl.zeros([ROWS], tl.float32)
    of_distances = tl.zeros([ROWS], tl.float32)
    best = tl.full([ROWS], -1, tl.int32)
    count = tl.zeros([ROWS], tl.int32)
    low, full_low, full, before, after = _blocks_of_keys(
        first, queries, num_keys, offset, back, ahead, ROWS, KEYS
    )
    for edge in tl.static_range(2):  # 0: fully visible blocks; 1: the others
        if edge:
            blocks_here = before + after
        else:
            blocks_here = full
        for number_of_block in range(blocks_here):
            start = _place(number_of_block, low, full_low, full, before, KEYS, edge)
            key = start + tl.arange(0, KEYS)
            there = _load_rows(
                key_base, key, num_keys, key_row, key_dim, head_dim, WIDTH, PADDED, UPCAST, edge,
            )  # fmt: skip
            dots = tl.dot(vectors, tl.trans(there), input_precision="ieee")
            scores, seen = _score(
                dots, row[:, None], key[None, :], tokens + batch * token_batch, bias_base,
                bias_row, bias_key, queries, num_keys, scale, softcap, offset, back, ahead, step,
                near_back, near_ahead, near_step, marks, num_marks,
                TOKENS, BIAS, SOFTCAP, STRIDED, MARKS, edge,
            )  # fmt: skip
            if COUNT:
                count += tl.sum(seen.to(tl.int32), 1)
            ordered = tl.where(seen, scores, float("-inf"))
            if BEST:  # NaN has no place in an order; a sum keeps it
                ordered = tl.where(scores == scores, ordered, float("-inf"))
            greatest = tl.max(ordered, 1)
            if BEST:
                place = tl.argmax(ordered, 1, tie_break_left=True).to(tl.int32)
                # The first of equals: the blocks do not come in their order.
                is_first = (greatest == maximum) & (start + place < best)
                best = tl.where((greatest > maximum) | is_first, start + place, best)
            new = tl.maximum(maximum, greatest)
            # Finite, so that a sum is NaN where a score is, and infinite where one is +∞.
            base = tl.where(new == float("-inf"), 0.0, tl.minimum(new, 3.0e38))
            shift = tl.where(maximum == float("-inf"), 0.0, tl.minimum(maximum, 3.0e38) - base)
            factor = tl.exp(shift)
            centred = tl.where(seen, scores - base[:, None], 0.0)
            powers = tl.where(seen, tl.exp(centred), 0.0)
            if ENTROPY:
                of_logs = (of_logs + total * shift) * factor + tl.sum(powers * centred, 1)
            if SQUARES:
                of_squares = of_squares * factor * factor + tl.sum(powers * powers, 1)
            if DISTANCE:
                # Places are counted from the block: fewer whole numbers are made into fractions.
                place_of_row = (offset + row - start).to(tl.float32)
                place_of_key = tl.arange(0, KEYS).to(tl.float32)
                away = tl.abs(place_of_row[:, None] - place_of_key[None, :])
                of_distances = of_distances * factor + tl.sum(powers * away, 1)
            total = total * factor + tl.sum(powers, 1)
            maximum = new
    # A row of scores that are no numbers, or −∞ alone, has weights that are none.
    place = of_head * queries + row
    inside = row < queries
    if COUNT:
        tl.store(counts + place, count, mask=inside)
    else:
        count = tl.load(counts + place, mask=inside, other=0)
    is_empty = count == 0
    is_unknown = total != total
    is_lost = is_unknown | (maximum == float("inf")) | ((total == 0.0) & (count > 0))
    divisor = tl.where(is_empty, 1.0, tl.where(is_lost, float("nan"), total))
    tl.store(maxima + place, tl.where(is_unknown, float("nan"), maximum), mask=inside)
    # The power of the greatest score is 1, but for a rounding.
    inverse = tl.where(divisor < 1.0, 1.0, 1.0 / divisor)
    tl.store(inverses + place, tl.where(is_empty, 0.0, inverse), mask=inside)
    if ENTROPY:
        tl.store(entropies + place, tl.log(divisor) - of_logs / divisor, mask=inside)
    if SQUARES:
        tl.store(squares + place, of_squares / (divisor * divisor), mask=inside)
    if DISTANCE:
        tl.store(distances + place, of_distances / divisor, mask=inside)
    if BEST:
        tl.store(best_keys + place, best, mask=inside)


@_jit
@no_type_check
def pair_pass(
    query, keys, tokens, bias, maxima, inverses, targets, weights,
    query_batch, query_head, query_row, query_dim, key_batch, key_head, key_row, key_dim,
    token_batch, bias_batch, bias_head, bias_row, bias_key,
    heads, group, queries, num_keys, head_dim, scale, softcap, offset, back, ahead, step,
    near_back, near_ahead, near_step, marks, num_marks, shift,
    TOKENS: tl.constexpr, BIAS: tl.constexpr, SOFTCAP: tl.constexpr, STRIDED: tl.constexpr,
    MARKS: tl.constexpr,
    UPCAST: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    FIXED: tl.constexpr,
):  # fmt: skip
    """The weight of one key for each query: the target of its batch row, or that at i + shift."""
    blocks = tl.cdiv(queries, ROWS)
    of_head = (tl.program_id(0) // blocks).to(tl.int64)
    row = (tl.program_id(0) % blocks) * ROWS + tl.arange(0, ROWS)
    batch = of_head // heads
    head = of_head % heads
    inside = row < queries
    if FIXED:
        key = tl.load(targets + batch) + row * 0
    else:
        key = offset + shift + row
    vectors = _load_rows(
        query + batch * query_batch + head * query_head, row, queries, query_row, query_dim,
        head_dim, WIDTH, PADDED, UPCAST, EDGE=True,
    )  # fmt: skip
    there = _load_rows(
        keys + batch * key_batch + (head // group) * key_head, key, num_keys, key_row, key_dim,
        head_dim, WIDTH, PADDED, UPCAST, EDGE=True,
    )  # fmt: skip
    scores, seen = _score(
        tl.sum(vectors.to(tl.float32) * there.to(tl.float32), 1), row, key,
        tokens + batch * token_batch, bias + batch * bias_batch + head * bias_head,
        bias_row, bias_key, queries, num_keys, scale, softcap, offset, back, ahead, step,
        near_back, near_ahead, near_step, marks, num_marks,
        TOKENS, BIAS, SOFTCAP, STRIDED, MARKS, EDGE=True,
    )  # fmt: skip
    place = of_head * queries + row
    maximum = tl.load(maxima + place, mask=inside, other=0.0)
    inverse = tl.load(inverses + place, mask=inside, other=0.0)
    tl.store(weights + place, _weights(scores, seen, maximum, inverse), mask=inside)


@_jit
@no_type_check
def received_pass(
    query, keys, tokens, bias, maxima, inverses, counted, sums,
    query_batch, query_head, query_row, query_dim, key_batch, key_head, key_row, key_dim,
    token_batch, bias_batch, bias_head, bias_row, bias_key,
    heads, group, queries, num_keys, head_dim, scale, softcap, offset, back, ahead, step,
    near_back, near_ahead, near_step, marks, num_marks,
    TOKENS: tl.constexpr, BIAS: tl.constexpr, SOFTCAP: tl.constexpr, STRIDED: tl.constexpr,
    MARKS: tl.constexpr,
    UPCAST: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    COUNTED: tl.constexpr,
):  # fmt: skip
    """Σ_i w_ij over the queries that count; blocks of queries are added in float64."""
    blocks = tl.cdiv(num_keys, KEYS)
    of_head = (tl.program_id(0) // blocks).to(tl.int64)
    first = (tl.program_id(0) % blocks) * KEYS
    batch = of_head // heads
    head = of_head % heads
    key = first + tl.arange(0, KEYS)
    query_base = query + batch * query_batch + head * query_head
    key_base = keys + batch * key_batch + (head // group) * key_head
    bias_base = bias + batch * bias_batch + head * bias_head
    there = _load_rows(
        key_base, key, num_keys, key_row, key_dim, head_dim, WIDTH, PADDED, UPCAST, EDGE=True
    )
    total = tl.zeros([KEYS], tl.float64)
    last = tl.minimum(first + KEYS, num_keys) - 1
    low = tl.maximum(first - ahead - offset, 0) // ROWS * ROWS
    high = tl.minimum(last + 1 + back - offset, queries)
    full_low = tl.cdiv(tl.maximum(last - ahead - offset, 0), ROWS) * ROWS
    full_high = tl.maximum(tl.minimum(first + back - offset + 1, queries), 0) // ROWS * ROWS
    full_low, full, before, after = _split(low, high, full_low, full_high, ROWS)
    for edge in tl.static_range(2):
        if edge:
            blocks_here = before + after
        else:
            blocks_here = full
        for number_of_block in range(blocks_here):
            start = _place(number_of_block, low, full_low, full, before, ROWS, edge)
            row = start + tl.arange(0, ROWS)
            vectors = _load_rows(
                query_base, row, queries, query_row, query_dim, head_dim,
                WIDTH, PADDED, UPCAST, edge,
            )  # fmt: skip
            dots = tl.dot(vectors, tl.trans(there), input_precision="ieee")
            scores, seen = _score(
                dots, row[:, None], key[None, :], tokens + batch * token_batch, bias_base,
                bias_row, bias_key, queries, num_keys, scale, softcap, offset, back, ahead, step,
                near_back, near_ahead, near_step, marks, num_marks,
                TOKENS, BIAS, SOFTCAP, STRIDED, MARKS, edge,
            )  # fmt: skip
            inside = row < queries
            if COUNTED:
                counts = tl.load(counted + batch * queries + row, mask=inside, other=0) != 0
                seen = seen & counts[:, None]
            maximum = tl.load(maxima + of_head * queries + row, mask=inside, other=0.0)
            inverse = tl.load(inverses + of_head * queries + row, mask=inside, other=0.0)
            found = _weights(scores, seen, maximum[:, None], inverse[:, None])
            total += tl.sum(found, 0).to(tl.float64)
    tl.store(sums + of_head * num_keys + key, total, mask=key < num_keys)


@_jit
@no_type_check
def count_pass(
    query, keys, tokens, bias, maxima, inverses, counts,
    query_batch, query_head, query_row, query_dim, key_batch, key_head, key_row, key_dim,
    token_batch, bias_batch, bias_head, bias_row, bias_key,
    heads, group, queries, num_keys, head_dim, scale, softcap, offset, back, ahead, step,
    near_back, near_ahead, near_step, marks, num_marks, threshold,
    TOKENS: tl.constexpr, BIAS: tl.constexpr, SOFTCAP: tl.constexpr, STRIDED: tl.constexpr,
    MARKS: tl.constexpr,
    UPCAST: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
):  # fmt: skip
    """How many weights of each row are greater than the threshold."""
    blocks = tl.cdiv(queries, ROWS)
    of_head = (tl.program_id(0) // blocks).to(tl.int64)
    first = (blocks - 1 - tl.program_id(0) % blocks) * ROWS  # the longest rows of a causal map
    batch = of_head // heads
    head = of_head % heads
    row = first + tl.arange(0, ROWS)
    inside = row < queries
    query_base = query + batch * query_batch + head * query_head
    key_base = keys + batch * key_batch + (head // group) * key_head
    bias_base = bias + batch * bias_batch + head * bias_head
    vectors = _load_rows(
        query_base, row, queries, query_row, query_dim, head_dim, WIDTH, PADDED, UPCAST, EDGE=True
    )
    maximum = tl.load(maxima + of_head * queries + row, mask=inside, other=0.0)
    inverse = tl.load(inverses + of_head * queries + row, mask=inside, other=0.0)
    count = tl.zeros([ROWS], tl.int32)
    low, full_low, full, before, after = _blocks_of_keys(
        first, queries, num_keys, offset, back, ahead, ROWS, KEYS
    )
    for edge in tl.static_range(2):
        if edge:
            blocks_here = before + after
        else:
            blocks_here = full
        for number_of_block in range(blocks_here):
            start = _place(number_of_block, low, full_low, full, before, KEYS, edge)
            key = start + tl.arange(0, KEYS)
            there = _load_rows(
                key_base, key, num_keys, key_row, key_dim, head_dim, WIDTH, PADDED, UPCAST, edge,
            )  # fmt: skip
            dots = tl.dot(vectors, tl.trans(there), input_precision="ieee")
            scores, seen = _score(
                dots, row[:, None], key[None, :], tokens + batch * token_batch, bias_base,
                bias_row, bias_key, queries, num_keys, scale, softcap, offset, back, ahead, step,
                near_back, near_ahead, near_step, marks, num_marks,
                TOKENS, BIAS, SOFTCAP, STRIDED, MARKS, edge,
            )  # fmt: skip
            found = _weights(scores, seen, maximum[:, None], inverse[:, None])
            count += tl.sum((found > threshold).to(tl.int32), 1)
    tl.store(counts + of_head * queries + row, count, mask=inside)


@_jit
@no_type_check
def top_pass(
    query, keys, tokens, bias, maxima, inverses, top_weights, top_keys,
    query_batch, query_head, query_row, query_dim, key_batch, key_head, key_row, key_dim,
    token_batch, bias_batch, bias_head, bias_row, bias_key,
    heads, group, queries, num_keys, head_dim, scale, softcap, offset, back, ahead, step,
    near_back, near_ahead, near_step, marks, num_marks, most,
    TOKENS: tl.constexpr, BIAS: tl.constexpr, SOFTCAP: tl.constexpr, STRIDED: tl.constexpr,
    MARKS: tl.constexpr,
    UPCAST: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
):  # fmt: skip
    """The `most` greatest weights of each row and their keys, one search through the row each.

    Equal scores come in the order of their keys. The same products are the same bits in each
    search, so that none is found twice.
    """
    blocks = tl.cdiv(queries, ROWS)
    of_head = (tl.program_id(0) // blocks).to(tl.int64)
    first = (blocks - 1 - tl.program_id(0) % blocks) * ROWS  # the longest rows of a causal map
    batch = of_head // heads
    head = of_head % heads
    row = first + tl.arange(0, ROWS)
    inside = row < queries
    query_base = query + batch * query_batch + head * query_head
    key_base = keys + batch * key_batch + (head // group) * key_head
    bias_base = bias + batch * bias_batch + head * bias_head
    vectors = _load_rows(
        query_base, row, queries, query_row, query_dim, head_dim, WIDTH, PADDED, UPCAST, EDGE=True
    )
    maximum = tl.load(maxima + of_head * queries + row, mask=inside, other=0.0)
    inverse = tl.load(inverses + of_head * queries + row, mask=inside, other=0.0)
    last_score = tl.full([ROWS], float("inf"), tl.float32)
    last_key = tl.full([ROWS], -1, tl.int32)
    low, full_low, full, before, after = _blocks_of_keys(
        first, queries, num_keys, offset, back, ahead, ROWS, KEYS
    )
    for number in range(most):
        best_score = tl.full([ROWS], float("-inf"), tl.float32)
        best_key = tl.full([ROWS], -1, tl.int32)
        for edge in tl.static_range(2):
            if edge:
                blocks_here = before + after
            else:
                blocks_here = full
            for number_of_block in range(blocks_here):
                start = _place(number_of_block, low, full_low, full, before, KEYS, edge)
                key = start + tl.arange(0, KEYS)
                there = _load_rows(
                    key_base, key, num_keys, key_row, key_dim, head_dim,
                    WIDTH, PADDED, UPCAST, edge,
                )  # fmt: skip
                dots = tl.dot(vectors, tl.trans(there), input_precision="ieee")
                scores, seen = _score(
                    dots, row[:, None], key[None, :], tokens + batch * token_batch, bias_base,
                    bias_row, bias_key, queries, num_keys, scale, softcap, offset, back, ahead,
                    step, near_back, near_ahead, near_step, marks, num_marks,
                    TOKENS, BIAS, SOFTCAP, STRIDED, MARKS, edge,
                )  # fmt: skip
                later = (scores == last_score[:, None]) & (key[None, :] > last_key[:, None])
                left = seen & ((scores < last_score[:, None]) | later)
                ordered = tl.where(left, scores, float("-inf"))
                greatest = tl.max(ordered, 1)
                place = tl.argmax(ordered, 1, tie_break_left=True).to(tl.int32)
                is_first = (greatest == best_score) & (start + place < best_key)
                best_key = tl.where((greatest > best_score) | is_first, start + place, best_key)
                best_score = tl.maximum(best_score, greatest)
        found = _weights(best_score, best_key >= 0, maximum, inverse)
        found = tl.where(inverse != inverse, float("nan"), found)
        place_of = (of_head * queries + row) * most + number
        tl.store(top_weights + place_of, found, mask=inside)
        tl.store(top_keys + place_of, best_key, mask=inside)
        last_score = best_score
        last_key = best_key


@_jit
@no_type_check
def mass_pass(
    query, keys, tokens, bias, maxima, inverses, groups, masses,
    query_batch, query_head, query_row, query_dim, key_batch, key_head, key_row, key_dim,
    token_batch, bias_batch, bias_head, bias_row, bias_key,
    heads, group, queries, num_keys, head_dim, scale, softcap, offset, back, ahead, step,
    near_back, near_ahead, near_step, marks, num_marks, most,
    TOKENS: tl.constexpr, BIAS: tl.constexpr, SOFTCAP: tl.constexpr, STRIDED: tl.constexpr,
    MARKS: tl.constexpr,
    UPCAST: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    GROUPS: tl.constexpr,
):  # fmt: skip
    """Σ_{j ∈ g} w_ij for each of `most` groups g of keys; GROUPS is a power of two from it."""
    blocks = tl.cdiv(queries, ROWS)
    of_head = (tl.program_id(0) // blocks).to(tl.int64)
    first = (blocks - 1 - tl.program_id(0) % blocks) * ROWS  # the longest rows of a causal map
    batch = of_head // heads
    head = of_head % heads
    row = first + tl.arange(0, ROWS)
    inside = row < queries
    query_base = query + batch * query_batch + head * query_head
    key_base = keys + batch * key_batch + (head // group) * key_head
    bias_base = bias + batch * bias_batch + head * bias_head
    vectors = _load_rows(
        query_base, row, queries, query_row, query_dim, head_dim, WIDTH, PADDED, UPCAST, EDGE=True
    )
    maximum = tl.load(maxima + of_head * queries + row, mask=inside, other=0.0)
    inverse = tl.load(inverses + of_head * queries + row, mask=inside, other=0.0)
    number = tl.arange(0, GROUPS)
    total = tl.zeros([ROWS, GROUPS], tl.float32)
    low, full_low, full, before, after = _blocks_of_keys(
        first, queries, num_keys, offset, back, ahead, ROWS, KEYS
    )
    for edge in tl.static_range(2):
        if edge:
            blocks_here = before + after
        else:
            blocks_here = full
        for number_of_block in range(blocks_here):
            start = _place(number_of_block, low, full_low, full, before, KEYS, edge)
            key = start + tl.arange(0, KEYS)
            there = _load_rows(
                key_base, key, num_keys, key_row, key_dim, head_dim, WIDTH, PADDED, UPCAST, edge,
            )  # fmt: skip
            dots = tl.dot(vectors, tl.trans(there), input_precision="ieee")
            scores, seen = _score(
                dots, row[:, None], key[None, :], tokens + batch * token_batch, bias_base,
                bias_row, bias_key, queries, num_keys, scale, softcap, offset, back, ahead, step,
                near_back, near_ahead, near_step, marks, num_marks,
                TOKENS, BIAS, SOFTCAP, STRIDED, MARKS, edge,
            )  # fmt: skip
            found = _weights(scores, seen, maximum[:, None], inverse[:, None])
            of_key = tl.load(groups + batch * num_keys + key, mask=key < num_keys, other=-1)
            member = (of_key[:, None] == number[None, :]).to(tl.float32)
            total += tl.dot(found, member, input_precision="ieee")
    places = masses + (of_head * queries + row)[:, None] * most + number[None, :]
    tl.store(places, total, mask=inside[:, None] & (number < most)[None, :])


@_jit
@no_type_check
def pool_pass(
    query, keys, tokens, bias, maxima, inverses, cells,
    query_batch, query_head, query_row, query_dim, key_batch, key_head, key_row, key_dim,
    token_batch, bias_batch, bias_head, bias_row, bias_key,
    heads, group, queries, num_keys, head_dim, scale, softcap, offset, back, ahead, step,
    near_back, near_ahead, near_step, marks, num_marks,
    cell_rows, cell_keys, left, right,
    TOKENS: tl.constexpr, BIAS: tl.constexpr, SOFTCAP: tl.constexpr, STRIDED: tl.constexpr,
    MARKS: tl.constexpr,
    UPCAST: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    MAXIMUM: tl.constexpr,
):  # fmt: skip
    """The sum or the maximum of the weights of one cell: all queries, and keys left … right − 1.

    A cell without a seen key has the maximum −∞.
    """
    of_head = (tl.program_id(0) // (cell_rows * cell_keys)).to(tl.int64)
    cell = tl.program_id(0) % (cell_rows * cell_keys)
    cell_row = (cell // cell_keys).to(tl.int64)
    cell_key = (cell % cell_keys).to(tl.int64)
    batch = of_head // heads
    head = of_head % heads
    top = (cell_row * queries // cell_rows).to(tl.int32)
    bottom = ((cell_row + 1) * queries // cell_rows).to(tl.int32)
    begin = left + (cell_key * (right - left) // cell_keys).to(tl.int32)
    end = left + ((cell_key + 1) * (right - left) // cell_keys).to(tl.int32)
    query_base = query + batch * query_batch + head * query_head
    key_base = keys + batch * key_batch + (head // group) * key_head
    bias_base = bias + batch * bias_batch + head * bias_head
    if MAXIMUM:
        pooled = tl.full([ROWS], float("-inf"), tl.float32)
    else:
        pooled = tl.zeros([ROWS], tl.float32)
    is_lost = tl.zeros([ROWS], tl.int1)
    for first in range(top, bottom, ROWS):
        row = first + tl.arange(0, ROWS)
        inside = row < bottom
        vectors = _load_rows(
            query_base, row, bottom, query_row, query_dim, head_dim,
            WIDTH, PADDED, UPCAST, EDGE=True,
        )  # fmt: skip
        maximum = tl.load(maxima + of_head * queries + row, mask=inside, other=0.0)
        inverse = tl.load(inverses + of_head * queries + row, mask=inside, other=0.0)
        last = tl.minimum(first + ROWS, bottom) - 1
        low = tl.maximum(offset + first - back, begin)
        high = tl.minimum(offset + last + 1 + ahead, end)
        # Blocks of a cell begin at `low`, not at a multiple of their size.
        full_low = low + tl.cdiv(tl.maximum(offset + last - back - low, 0), KEYS) * KEYS
        full_high = tl.minimum(offset + first + ahead + 1, end)
        full_high = low + tl.maximum(full_high - low, 0) // KEYS * KEYS
        if first + ROWS > bottom:  # no row beyond the cell counts
            full_high = low
        full_low, full, before, after = _split(low, high, full_low, full_high, KEYS)
        for edge in tl.static_range(2):
            if edge:
                blocks_here = before + after
            else:
                blocks_here = full
            for number_of_block in range(blocks_here):
                start = _place(number_of_block, low, full_low, full, before, KEYS, edge)
                key = start + tl.arange(0, KEYS)
                there = _load_rows(
                    key_base, key, end, key_row, key_dim, head_dim, WIDTH, PADDED, UPCAST, edge,
                )  # fmt: skip
                dots = tl.dot(vectors, tl.trans(there), input_precision="ieee")
                scores, seen = _score(
                    dots, row[:, None], key[None, :], tokens + batch * token_batch, bias_base,
                    bias_row, bias_key, bottom, end, scale, softcap, offset, back, ahead, step,
                    near_back, near_ahead, near_step, marks, num_marks,
                    TOKENS, BIAS, SOFTCAP, STRIDED, MARKS, edge,
                )  # fmt: skip
                found = _weights(scores, seen, maximum[:, None], inverse[:, None])
                if MAXIMUM:
                    pooled = tl.maximum(pooled, tl.max(tl.where(seen, found, float("-inf")), 1))
                    # A weight is NaN where all of its row are.
                    sees = tl.max(tl.where(seen, 1.0, 0.0), 1) > 0.0
                    is_lost = is_lost | (sees & (inverse != inverse))
                else:
                    pooled += tl.sum(found, 1)
    place = cells + tl.program_id(0).to(tl.int64)
    if MAXIMUM:
        tl.store(
            place, tl.where(tl.max(is_lost.to(tl.int32), 0) > 0, float("nan"), tl.max(pooled, 0))
        )
    else:
        tl.store(place, tl.sum(pooled, 0))

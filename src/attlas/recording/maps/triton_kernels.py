"""Triton kernels of the statistics of softmax(cap(scale · q kᵀ) + bias), which hold no weights.

A first pass goes through the keys of a block of queries, as flash attention does. It keeps a
running maximum and rescales its sums where the maximum grows. It leaves the maximum m of the scores
of each row and 1 / l, with l = Σ exp(s − m). So a later pass has each weight as exp(s − m) / l.

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
)


def _jit(function: Any) -> Any:
    if triton is None:
        return function
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return triton.jit(function, do_not_specialize=[name for name in _CHANGING if name in names])


@_jit
@no_type_check
def _load_rows(
    base, index, count, row_stride, dim_stride, head_dim, WIDTH: tl.constexpr, UPCAST: tl.constexpr
):
    """Vectors of queries or keys, (index, WIDTH); zeros outside."""
    dim = tl.arange(0, WIDTH)
    inside = ((index >= 0) & (index < count))[:, None] & (dim < head_dim)[None, :]
    places = base + index.to(tl.int64)[:, None] * row_stride + dim[None, :] * dim_stride
    vectors = tl.load(places, mask=inside, other=0.0)
    if UPCAST:
        vectors = vectors.to(tl.float32)
    return vectors


@_jit
@no_type_check
def _score(
    dots, query, key, tokens, bias, bias_row, bias_key, queries, num_keys,
    scale, softcap, offset, back, ahead, step,
    near_back, near_ahead, near_step, marks, num_marks,
    TOKENS: tl.constexpr, BIAS: tl.constexpr, SOFTCAP: tl.constexpr, STRIDED: tl.constexpr,
    MARKS: tl.constexpr,
):  # fmt: skip
    """Scores of these products, and which of them are seen; `query` and `key` broadcast."""
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
    seen = (query >= 0) & (query < queries) & (key >= 0) & (key < num_keys)
    seen = seen & (ahead_of_key <= back) & (ahead_of_key >= -ahead)
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
        inside = (key >= 0) & (key < num_keys)
        seen = seen & (tl.load(tokens + key, mask=inside, other=0) != 0)
    if BIAS != "none":
        places = bias + query.to(tl.int64) * bias_row + key.to(tl.int64) * bias_key
        added = tl.load(places, mask=seen, other=0)
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
    """exp(s − m) / l, and 0 where a key is not seen."""
    centred = tl.where(seen, scores - tl.where(seen, maximum, 0.0), float("-inf"))
    return tl.exp(centred) * tl.where(seen, inverse, 0.0)


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
    ENTROPY: tl.constexpr, SQUARES: tl.constexpr, DISTANCE: tl.constexpr, BEST: tl.constexpr,
):  # fmt: skip
    """m, 1 / l, Σ p log p, Σ p², Σ p |i − j|, the greatest key and the number of seen keys."""
    blocks = tl.cdiv(queries, ROWS)
    of_head = (tl.program_id(0) // blocks).to(tl.int64)
    first = (tl.program_id(0) % blocks) * ROWS
    batch = of_head // heads
    head = of_head % heads
    row = first + tl.arange(0, ROWS)
    query_base = query + batch * query_batch + head * query_head
    key_base = keys + batch * key_batch + (head // group) * key_head
    bias_base = bias + batch * bias_batch + head * bias_head
    vectors = _load_rows(query_base, row, queries, query_row, query_dim, head_dim, WIDTH, UPCAST)
    maximum = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    of_logs = tl.zeros([ROWS], tl.float32)  # Σ exp(s − m) (s − m)
    of_squares = tl.zeros([ROWS], tl.float32)
    of_distances = tl.zeros([ROWS], tl.float32)
    best = tl.full([ROWS], -1, tl.int32)
    count = tl.zeros([ROWS], tl.int32)
    unknown = tl.zeros([ROWS], tl.int32)
    low = tl.maximum(offset + first - back, 0) // KEYS * KEYS
    high = tl.minimum(offset + tl.minimum(first + ROWS, queries) + ahead, num_keys)
    for start in range(low, high, KEYS):
        key = start + tl.arange(0, KEYS)
        there = _load_rows(key_base, key, num_keys, key_row, key_dim, head_dim, WIDTH, UPCAST)
        dots = tl.dot(vectors, tl.trans(there), input_precision="ieee")
        scores, seen = _score(
            dots, row[:, None], key[None, :], tokens + batch * token_batch, bias_base,
            bias_row, bias_key, queries, num_keys, scale, softcap, offset, back, ahead, step,
            near_back, near_ahead, near_step, marks, num_marks,
            TOKENS, BIAS, SOFTCAP, STRIDED, MARKS,
        )  # fmt: skip
        unknown = tl.maximum(unknown, tl.max((seen & (scores != scores)).to(tl.int32), 1))
        count += tl.sum(seen.to(tl.int32), 1)
        ordered = tl.where(seen & (scores == scores), scores, float("-inf"))
        greatest = tl.max(ordered, 1)
        if BEST:
            place = tl.argmax(ordered, 1, tie_break_left=True).to(tl.int32)
            best = tl.where(greatest > maximum, start + place, best)
        new = tl.maximum(maximum, greatest)
        base = tl.where(new == float("-inf"), 0.0, new)
        shift = tl.where(maximum == float("-inf"), 0.0, maximum - base)
        factor = tl.exp(shift)
        centred = tl.where(seen, scores - base[:, None], 0.0)
        powers = tl.where(seen, tl.exp(centred), 0.0)
        if ENTROPY:
            of_logs = (of_logs + total * shift) * factor + tl.sum(powers * centred, 1)
        if SQUARES:
            of_squares = of_squares * factor * factor + tl.sum(powers * powers, 1)
        if DISTANCE:
            away = tl.abs(offset + row[:, None] - key[None, :]).to(tl.float32)
            of_distances = of_distances * factor + tl.sum(powers * away, 1)
        total = total * factor + tl.sum(powers, 1)
        maximum = new
    # A row of scores that are no numbers, or −∞ alone, has weights that are none.
    is_empty = count == 0
    is_lost = (unknown > 0) | ((total == 0.0) & (count > 0))
    divisor = tl.where(is_empty, 1.0, tl.where(is_lost, float("nan"), total))
    place = of_head * queries + row
    inside = row < queries
    tl.store(maxima + place, tl.where(unknown > 0, float("nan"), maximum), mask=inside)
    tl.store(inverses + place, tl.where(is_empty, 0.0, 1.0 / divisor), mask=inside)
    tl.store(counts + place, count, mask=inside)
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
        head_dim, WIDTH, UPCAST,
    )  # fmt: skip
    there = _load_rows(
        keys + batch * key_batch + (head // group) * key_head, key, num_keys, key_row, key_dim,
        head_dim, WIDTH, UPCAST,
    )  # fmt: skip
    scores, seen = _score(
        tl.sum(vectors.to(tl.float32) * there.to(tl.float32), 1), row, key,
        tokens + batch * token_batch, bias + batch * bias_batch + head * bias_head,
        bias_row, bias_key, queries, num_keys, scale, softcap, offset, back, ahead, step,
        near_back, near_ahead, near_step, marks, num_marks,
        TOKENS, BIAS, SOFTCAP, STRIDED, MARKS,
    )  # fmt: skip
    place = of_head * queries + row
    maximum = tl.load(maxima + place, mask=inside, other=0.0)
    inverse = tl.load(inverses + place, mask=inside, other=0.0)
    found = _weights(scores, seen, maximum, inverse)
    # A product of another order may be above the maximum by a rounding.
    found = tl.where(found > inverse, inverse, found)
    tl.store(weights + place, found, mask=inside)


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
    there = _load_rows(key_base, key, num_keys, key_row, key_dim, head_dim, WIDTH, UPCAST)
    total = tl.zeros([KEYS], tl.float64)
    low = tl.maximum(first - ahead - offset, 0) // ROWS * ROWS
    high = tl.minimum(tl.minimum(first + KEYS, num_keys) + back - offset, queries)
    for start in range(low, high, ROWS):
        row = start + tl.arange(0, ROWS)
        vectors = _load_rows(
            query_base, row, queries, query_row, query_dim, head_dim, WIDTH, UPCAST
        )
        dots = tl.dot(vectors, tl.trans(there), input_precision="ieee")
        scores, seen = _score(
            dots, row[:, None], key[None, :], tokens + batch * token_batch, bias_base,
            bias_row, bias_key, queries, num_keys, scale, softcap, offset, back, ahead, step,
            near_back, near_ahead, near_step, marks, num_marks,
            TOKENS, BIAS, SOFTCAP, STRIDED, MARKS,
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
):  # fmt: skip
    """How many weights of each row are greater than the threshold."""
    blocks = tl.cdiv(queries, ROWS)
    of_head = (tl.program_id(0) // blocks).to(tl.int64)
    first = (tl.program_id(0) % blocks) * ROWS
    batch = of_head // heads
    head = of_head % heads
    row = first + tl.arange(0, ROWS)
    inside = row < queries
    query_base = query + batch * query_batch + head * query_head
    key_base = keys + batch * key_batch + (head // group) * key_head
    bias_base = bias + batch * bias_batch + head * bias_head
    vectors = _load_rows(query_base, row, queries, query_row, query_dim, head_dim, WIDTH, UPCAST)
    maximum = tl.load(maxima + of_head * queries + row, mask=inside, other=0.0)
    inverse = tl.load(inverses + of_head * queries + row, mask=inside, other=0.0)
    count = tl.zeros([ROWS], tl.int32)
    low = tl.maximum(offset + first - back, 0) // KEYS * KEYS
    high = tl.minimum(offset + tl.minimum(first + ROWS, queries) + ahead, num_keys)
    for start in range(low, high, KEYS):
        key = start + tl.arange(0, KEYS)
        there = _load_rows(key_base, key, num_keys, key_row, key_dim, head_dim, WIDTH, UPCAST)
        dots = tl.dot(vectors, tl.trans(there), input_precision="ieee")
        scores, seen = _score(
            dots, row[:, None], key[None, :], tokens + batch * token_batch, bias_base,
            bias_row, bias_key, queries, num_keys, scale, softcap, offset, back, ahead, step,
            near_back, near_ahead, near_step, marks, num_marks,
            TOKENS, BIAS, SOFTCAP, STRIDED, MARKS,
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
):  # fmt: skip
    """The `most` greatest weights of each row and their keys, one search through the row each.

    Equal scores come in the order of their keys. The same products are the same bits in each
    search, so that none is found twice.
    """
    blocks = tl.cdiv(queries, ROWS)
    of_head = (tl.program_id(0) // blocks).to(tl.int64)
    first = (tl.program_id(0) % blocks) * ROWS
    batch = of_head // heads
    head = of_head % heads
    row = first + tl.arange(0, ROWS)
    inside = row < queries
    query_base = query + batch * query_batch + head * query_head
    key_base = keys + batch * key_batch + (head // group) * key_head
    bias_base = bias + batch * bias_batch + head * bias_head
    vectors = _load_rows(query_base, row, queries, query_row, query_dim, head_dim, WIDTH, UPCAST)
    maximum = tl.load(maxima + of_head * queries + row, mask=inside, other=0.0)
    inverse = tl.load(inverses + of_head * queries + row, mask=inside, other=0.0)
    last_score = tl.full([ROWS], float("inf"), tl.float32)
    last_key = tl.full([ROWS], -1, tl.int32)
    low = tl.maximum(offset + first - back, 0) // KEYS * KEYS
    high = tl.minimum(offset + tl.minimum(first + ROWS, queries) + ahead, num_keys)
    for number in range(most):
        best_score = tl.full([ROWS], float("-inf"), tl.float32)
        best_key = tl.full([ROWS], -1, tl.int32)
        for start in range(low, high, KEYS):
            key = start + tl.arange(0, KEYS)
            there = _load_rows(key_base, key, num_keys, key_row, key_dim, head_dim, WIDTH, UPCAST)
            dots = tl.dot(vectors, tl.trans(there), input_precision="ieee")
            scores, seen = _score(
                dots, row[:, None], key[None, :], tokens + batch * token_batch, bias_base,
                bias_row, bias_key, queries, num_keys, scale, softcap, offset, back, ahead, step,
                near_back, near_ahead, near_step, marks, num_marks,
                TOKENS, BIAS, SOFTCAP, STRIDED, MARKS,
            )  # fmt: skip
            later = (scores == last_score[:, None]) & (key[None, :] > last_key[:, None])
            left = seen & ((scores < last_score[:, None]) | later)
            ordered = tl.where(left, scores, float("-inf"))
            greatest = tl.max(ordered, 1)
            place = tl.argmax(ordered, 1, tie_break_left=True).to(tl.int32)
            best_key = tl.where(greatest > best_score, start + place, best_key)
            best_score = tl.maximum(best_score, greatest)
        found = _weights(best_score, best_key >= 0, maximum, inverse)
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
    GROUPS: tl.constexpr,
):  # fmt: skip
    """Σ_{j ∈ g} w_ij for each of `most` groups g of keys; GROUPS is a power of two from it."""
    blocks = tl.cdiv(queries, ROWS)
    of_head = (tl.program_id(0) // blocks).to(tl.int64)
    first = (tl.program_id(0) % blocks) * ROWS
    batch = of_head // heads
    head = of_head % heads
    row = first + tl.arange(0, ROWS)
    inside = row < queries
    query_base = query + batch * query_batch + head * query_head
    key_base = keys + batch * key_batch + (head // group) * key_head
    bias_base = bias + batch * bias_batch + head * bias_head
    vectors = _load_rows(query_base, row, queries, query_row, query_dim, head_dim, WIDTH, UPCAST)
    maximum = tl.load(maxima + of_head * queries + row, mask=inside, other=0.0)
    inverse = tl.load(inverses + of_head * queries + row, mask=inside, other=0.0)
    number = tl.arange(0, GROUPS)
    total = tl.zeros([ROWS, GROUPS], tl.float32)
    low = tl.maximum(offset + first - back, 0) // KEYS * KEYS
    high = tl.minimum(offset + tl.minimum(first + ROWS, queries) + ahead, num_keys)
    for start in range(low, high, KEYS):
        key = start + tl.arange(0, KEYS)
        there = _load_rows(key_base, key, num_keys, key_row, key_dim, head_dim, WIDTH, UPCAST)
        dots = tl.dot(vectors, tl.trans(there), input_precision="ieee")
        scores, seen = _score(
            dots, row[:, None], key[None, :], tokens + batch * token_batch, bias_base,
            bias_row, bias_key, queries, num_keys, scale, softcap, offset, back, ahead, step,
            near_back, near_ahead, near_step, marks, num_marks,
            TOKENS, BIAS, SOFTCAP, STRIDED, MARKS,
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
    unknown = tl.zeros([ROWS], tl.int32)
    for first in range(top, bottom, ROWS):
        row = first + tl.arange(0, ROWS)
        inside = row < bottom
        vectors = _load_rows(query_base, row, bottom, query_row, query_dim, head_dim, WIDTH, UPCAST)
        maximum = tl.load(maxima + of_head * queries + row, mask=inside, other=0.0)
        inverse = tl.load(inverses + of_head * queries + row, mask=inside, other=0.0)
        low = tl.maximum(offset + first - back, begin)
        high = tl.minimum(offset + tl.minimum(first + ROWS, bottom) + ahead, end)
        for start in range(low, high, KEYS):
            key = start + tl.arange(0, KEYS)
            there = _load_rows(key_base, key, end, key_row, key_dim, head_dim, WIDTH, UPCAST)
            dots = tl.dot(vectors, tl.trans(there), input_precision="ieee")
            scores, seen = _score(
                dots, row[:, None], key[None, :], tokens + batch * token_batch, bias_base,
                bias_row, bias_key, bottom, end, scale, softcap, offset, back, ahead, step,
                near_back, near_ahead, near_step, marks, num_marks,
                TOKENS, BIAS, SOFTCAP, STRIDED, MARKS,
            )  # fmt: skip
            found = _weights(scores, seen, maximum[:, None], inverse[:, None])
            if MAXIMUM:
                unknown = tl.maximum(unknown, tl.max((found != found).to(tl.int32), 1))
                pooled = tl.maximum(pooled, tl.max(tl.where(seen, found, float("-inf")), 1))
            else:
                pooled += tl.sum(found, 1)
    place = cells + tl.program_id(0).to(tl.int64)
    if MAXIMUM:
        tl.store(place, tl.where(tl.max(unknown, 0) > 0, float("nan"), tl.max(pooled, 0)))
    else:
        tl.store(place, tl.sum(pooled, 0))

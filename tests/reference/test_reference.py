"""The reference, held against its papers: sums written out, and the claims that they make."""

import math
import subprocess
import sys

import numpy as np
import pytest

from attlas import reference


@pytest.fixture
def noise():
    return np.random.default_rng(0)


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_the_reference_needs_no_torch():
    code = "import sys, attlas.reference; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_softmax_is_a_share_of_exponentials():
    close(reference.softmax(np.log([[1.0, 2.0, 5.0]])), [[0.125, 0.25, 0.625]])


def test_softmax_shares_among_the_seen_slots_alone():
    scores = np.log([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [np.e, 1.0, 1.0]])
    mask = np.array([[True, False, True], [False, True, False], [False, False, False]])
    close(reference.softmax(scores, mask), [[0.25, 0, 0.75], [0, 1, 0], [0, 0, 0]])


def test_softmax_of_scores_that_would_overflow():
    close(reference.softmax(np.array([[1e4, 1e4, -1e4]])), [[0.5, 0.5, 0.0]])


def test_softmax_never_looks_at_hidden_scores():
    scores, mask = np.array([[np.nan, 0.0, np.inf]]), np.array([[False, True, False]])
    close(reference.softmax(scores, mask), [[0.0, 1.0, 0.0]])


def test_scaled_dot_product_by_hand():
    # Scores 2 ln 3 / √4 = ln 3 and 0: weights 3/4 and 1/4.
    Q, K = np.array([[2.0, 0, 0, 0]]), np.array([[math.log(3), 1, 1, 1], [0, 1, 1, 1]])
    context, weights = reference.scaled_dot_product(Q, K, np.array([[4.0], [8.0]]))
    close(weights, [[0.75, 0.25]])
    close(context, [[5.0]])


def test_scaled_dot_product_written_out(noise):
    Q, K, V = noise.normal(size=(3, 4)), noise.normal(size=(5, 4)), noise.normal(size=(5, 2))
    mask = noise.random((3, 5)) < 0.6
    context, _ = reference.scaled_dot_product(Q, K, V, mask)
    for i, query in enumerate(Q):
        powers = [
            math.exp(sum(query * key) / 2.0) if seen else 0.0
            for key, seen in zip(K, mask[i], strict=True)
        ]
        close(context[i], sum(p * v for p, v in zip(powers, V, strict=True)) / sum(powers))


def test_one_head_with_identity_projections_is_scaled_dot_product(noise):
    Q, K = noise.normal(size=(3, 4)), noise.normal(size=(5, 4))
    whole = np.eye(4)[np.newaxis]
    context, weights = reference.multi_head(Q, K, K, whole, whole, whole, whole[0])
    alone = reference.scaled_dot_product(Q, K, K)
    close(context, alone[0])
    close(weights[0], alone[1])


def test_each_head_reads_through_its_own_projections(noise):
    Q, K = noise.normal(size=(3, 4)), noise.normal(size=(5, 6))
    W_Q, W_K, W_V = (noise.normal(size=size) for size in ((2, 4, 3), (2, 6, 3), (2, 6, 2)))
    W_O = noise.normal(size=(4, 4))
    context, weights = reference.multi_head(Q, K, K, W_Q, W_K, W_V, W_O)
    heads = [reference.scaled_dot_product(Q @ W_Q[i], K @ W_K[i], K @ W_V[i]) for i in range(2)]
    # The concatenation times W^O is a sum over heads.
    close(context, heads[0][0] @ W_O[:2] + heads[1][0] @ W_O[2:])
    close(weights, [heads[0][1], heads[1][1]])


def test_heads_that_share_keys_are_heads_with_the_same_projections(noise):
    Q, K = noise.normal(size=(3, 4)), noise.normal(size=(5, 4))
    W_Q, W_K, W_V = (noise.normal(size=(n, 4, 2)) for n in (4, 2, 2))
    W_O = noise.normal(size=(8, 4))
    shared = reference.multi_head(Q, K, K, W_Q, W_K, W_V, W_O)
    repeated = reference.multi_head(Q, K, K, W_Q, W_K[[0, 0, 1, 1]], W_V[[0, 0, 1, 1]], W_O)
    close(shared[0], repeated[0])
    close(shared[1], repeated[1])


def test_additive_written_out(noise):
    s, h = noise.normal(size=(2, 3)), noise.normal(size=(4, 5))
    W_a, U_a, v_a = noise.normal(size=(6, 3)), noise.normal(size=(6, 5)), noise.normal(size=6)
    c, alpha = reference.additive(s, h, W_a, U_a, v_a)
    for i in range(2):
        e = [
            sum(v_a[n] * math.tanh(W_a[n] @ s[i] + U_a[n] @ h[j]) for n in range(6))
            for j in range(4)
        ]
        shares = np.exp(e) / sum(np.exp(e))
        close(alpha[i], shares)
        close(c[i], sum(share * h_j for share, h_j in zip(shares, h, strict=True)))


def test_luongs_scores_written_out(noise):
    h_t, h_s = noise.normal(size=(2, 3)), noise.normal(size=(4, 3))
    W_a, W_pair, v_a = noise.normal(size=(3, 3)), noise.normal(size=(5, 6)), noise.normal(size=5)
    scores = {
        "dot": reference.dot(h_t, h_s),
        "general": reference.general(h_t, h_s, W_a),
        "concat": reference.concat(h_t, h_s, W_pair, v_a),
    }
    for t in range(2):
        for s in range(4):
            q, k = h_t[t], h_s[s]
            close(scores["dot"][t, s], sum(q[n] * k[n] for n in range(3)))
            general = sum(q[m] * W_a[m, n] * k[n] for m in range(3) for n in range(3))
            close(scores["general"][t, s], general)
            both = np.array([*q, *k])
            concat = sum(v_a[n] * math.tanh(W_pair[n] @ both) for n in range(5))
            close(scores["concat"][t, s], concat)


def test_concat_is_additive_attention_with_one_matrix(noise):
    # Luong's W_a [q; k] is Bahdanau's W_a q + U_a k.
    h_t, h_s = noise.normal(size=(2, 3)), noise.normal(size=(4, 5))
    W_a, v_a = noise.normal(size=(6, 8)), noise.normal(size=6)
    luong = reference.global_attention(reference.concat(h_t, h_s, W_a, v_a), h_s)
    bahdanau = reference.additive(h_t, h_s, W_a[:, :3], W_a[:, 3:], v_a)
    close(luong[0], bahdanau[0])
    close(luong[1], bahdanau[1])


def test_local_m_is_uniform_in_its_window_for_equal_scores():
    source = np.arange(6.0)[:, np.newaxis]
    context, a = reference.local_monotonic(np.zeros((2, 6)), source, D=1, query_offset=3)
    close(a, [[0, 0, 1 / 3, 1 / 3, 1 / 3, 0], [0, 0, 0, 1 / 3, 1 / 3, 1 / 3]])
    close(context, [[3.0], [4.0]])


def test_local_m_reads_nothing_beyond_the_end_of_the_source():
    context, a = reference.local_monotonic(np.zeros((1, 3)), np.ones((3, 2)), D=1, query_offset=9)
    close(a, np.zeros((1, 3)))
    close(context, np.zeros((1, 2)))


def test_local_p_predicts_the_middle_of_the_source_from_a_zero_state():
    p = reference.predicted_positions(np.zeros((1, 3)), 10, np.ones((2, 3)), np.ones(2))
    close(p, [5.0])


def test_local_p_written_out(noise):
    h_t, W_p, v_p = noise.normal(size=(2, 3)), noise.normal(size=(4, 3)), noise.normal(size=4)
    h_s, score = noise.normal(size=(7, 3)), noise.normal(size=(2, 7))
    p = reference.predicted_positions(h_t, 7, W_p, v_p)
    context, a = reference.local_predictive(score, h_s, 2, p)
    for t in range(2):
        logit = sum(v_p[n] * math.tanh(W_p[n] @ h_t[t]) for n in range(4))
        close(p[t], 7 / (1 + math.exp(-logit)))
        window = [s for s in range(7) if p[t] - 2 <= s <= p[t] + 2]
        total = sum(math.exp(score[t, s]) for s in window)
        for s in range(7):
            gaussian = math.exp(-((s - p[t]) ** 2) / (2 * 1.0**2))
            align = math.exp(score[t, s]) / total if s in window else 0.0
            close(a[t, s], align * gaussian)
        close(context[t], sum(a[t, s] * h_s[s] for s in range(7)))


def test_the_attentional_state_reads_context_before_state():
    W_c = np.array([[1.0, 0.0], [0.0, 2.0]])
    state = reference.attentional_state(np.array([[0.3]]), np.array([[0.4]]), W_c)
    close(state, [[math.tanh(0.3), math.tanh(0.8)]])


def test_sinusoidal_positions_written_out():
    PE = reference.sinusoidal(50, 6)
    for pos in (0, 1, 49):
        for i in range(3):
            angle = pos / 10_000 ** (2 * i / 6)
            close(PE[pos, 2 * i], math.sin(angle))
            close(PE[pos, 2 * i + 1], math.cos(angle))


def test_a_shift_of_sinusoidal_positions_is_one_linear_map():
    # The paper's reason for choosing them: PE(pos + k) is a linear function of PE(pos).
    PE = reference.sinusoidal(40, 8)
    shift, *_ = np.linalg.lstsq(PE[:20], PE[7:27], rcond=None)
    np.testing.assert_allclose(PE[20:33] @ shift, PE[27:40], atol=1e-9)


def test_rotary_products_depend_on_the_distance_alone(noise):
    q, k = noise.normal(size=(1, 6)), noise.normal(size=(1, 6))
    near = reference.rotary(q, offset=3) @ reference.rotary(k, offset=1).T
    far = reference.rotary(q, offset=103) @ reference.rotary(k, offset=101).T
    other = reference.rotary(q, offset=4) @ reference.rotary(k, offset=1).T
    np.testing.assert_allclose(near, far, atol=1e-9)
    assert abs(near - other) > 1e-3


def test_rotary_turns_and_never_stretches(noise):
    x = noise.normal(size=(9, 6))
    turned = reference.rotary(x)
    close(turned[0], x[0])
    close((turned**2).sum(-1), (x**2).sum(-1))
    close(turned[2, 0], x[2, 0] * math.cos(2) - x[2, 1] * math.sin(2))


def test_layer_norm_gives_every_position_mean_b_and_deviation_g(noise):
    a = noise.normal(3.0, 5.0, size=(4, 64))
    normal = reference.layer_norm(a, np.full(64, 2.0), np.full(64, 0.5), epsilon=0.0)
    close(normal.mean(-1), np.full(4, 0.5))
    close(normal.std(-1), np.full(4, 2.0))


def test_layer_norm_of_a_constant_position_is_its_bias():
    normal = reference.layer_norm(np.full((1, 3), 7.0), np.ones(3), np.array([1.0, 2.0, 3.0]))
    close(normal, [[1.0, 2.0, 3.0]])

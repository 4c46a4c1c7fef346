"""Parameter counts, derived by hand from the shapes in the papers.

n: decoder width, m: embedding, k: encoder width per direction, s: width of the source that is
looked at, a: attention's hidden width, l: readout. PyTorch's cells have two biases per gate.
"""

from itertools import product
from typing import Any

import pytest

from attlas.models import LocalConfig, RecurrentConfig, build

X, Y = 101, 103  # the sizes of the vocabularies
M, N, K, A, L = 5, 7, 3, 4, 9


def rnn(gates: int, layers: int, entering: int, width: int, directions: int = 1) -> int:
    """Per gate: W (width × entering), U (width × width), two biases."""

    def layer(inputs: int) -> int:
        return directions * gates * (width * inputs + width * width + 2 * width)

    return layer(entering) + (layers - 1) * layer(directions * width)


def attention(kind: str, s: int, n: int) -> int:
    general = n * s
    additive = A * n + A * s + A
    local_p = A * n + A  # W_p and v_p
    return {
        "additive": additive,  # W_a (a × n), U_a (a × s), v_a
        "concat": additive,  # W_a (a × (n + s)), v_a
        "dot": 0,
        "general": general,
        "local-m": 0,
        "local-p": general + local_p,
        "covered": additive + A,  # w_c (a)
    }[kind]


SETTINGS: dict[str, dict[str, Any]] = {
    "none": {"attention": "none"},
    "additive": {"attention": "additive", "attention_hidden_dim": A},
    "concat": {"attention": "concat", "attention_hidden_dim": A},
    "dot": {"attention": "dot"},
    "general": {"attention": "general"},
    "local-m": {"attention": "local", "local": LocalConfig(centre="monotonic", score="dot")},
    "local-p": {"attention": "local", "attention_hidden_dim": A, "local": LocalConfig()},
    "covered": {"attention": "additive", "attention_hidden_dim": A, "coverage": True},
}


def built(kind: str, **settings: Any) -> int:
    config = RecurrentConfig(embed_dim=M, encoder_hidden_dim=K, **SETTINGS[kind], **settings)
    return sum(parameter.numel() for parameter in build(config, X, Y).parameters())


def shape(kind: str, bidirectional: bool) -> tuple[int, int, int]:
    """n (dot scores need n = s), s and the number of the encoder's directions."""
    directions = 2 if bidirectional else 1
    s = directions * K
    return (s if kind in ("dot", "local-m") else N), s, directions


def shared(cell: str, layers: int, directions: int, n: int, bridged: int) -> int:
    """Both embeddings, the encoder and the bridge: W_s (n × bridged) and its bias per layer."""
    gates, states = {"gru": (3, 1), "lstm": (4, 2)}[cell]
    bridge = states * layers * (n * bridged + n)
    return X * M + Y * M + rnn(gates, layers, M, K, directions) + bridge


ALL = product(SETTINGS, ["gru", "lstm"], [1, 3], [False, True])
LOOKING = [case for case in ALL if case[0] != "none"]


@pytest.mark.parametrize(("kind", "cell", "layers", "bidirectional"), LOOKING)
@pytest.mark.parametrize("pieces", [1, 2])
def test_bahdanaus_wiring(
    kind: str, cell: str, layers: int, bidirectional: bool, pieces: int
) -> None:
    n, s, directions = shape(kind, bidirectional)
    decoder = rnn(3 if cell == "gru" else 4, layers, M + s, n)
    readout = pieces * L * (n + M + s) + pieces * L  # U_o, V_o, C_o (2l or l rows) and a bias
    output = Y * L + Y
    found = built(
        kind,
        cell=cell,
        layers=layers,
        bidirectional=bidirectional,
        hidden_dim=n,
        readout="maxout" if pieces == 2 else "tanh",
        readout_dim=L,
    )
    base = shared(cell, layers, directions, n, K)
    assert found == base + decoder + attention(kind, s, n) + readout + output


@pytest.mark.parametrize(("kind", "cell", "layers", "bidirectional"), LOOKING)
@pytest.mark.parametrize("feeding", [False, True])
def test_luongs_wiring(
    kind: str, cell: str, layers: int, bidirectional: bool, feeding: bool
) -> None:
    n, s, directions = shape(kind, bidirectional)
    decoder = rnn(3 if cell == "gru" else 4, layers, M + (n if feeding else 0), n)
    attentional = n * (s + n)  # W_c
    output = Y * n + Y
    found = built(
        kind,
        cell=cell,
        layers=layers,
        bidirectional=bidirectional,
        hidden_dim=n,
        decoder="luong",
        input_feeding=feeding,
    )
    base = shared(cell, layers, directions, n, K)
    assert found == base + decoder + attention(kind, s, n) + attentional + output


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_plain_model_bridges_every_direction(
    cell: str, layers: int, bidirectional: bool
) -> None:
    directions = 2 if bidirectional else 1
    decoder = rnn(3 if cell == "gru" else 4, layers, M, N)
    found = built("none", cell=cell, layers=layers, bidirectional=bidirectional, hidden_dim=N)
    base = shared(cell, layers, directions, N, directions * K)
    assert found == base + decoder + Y * N + Y


def test_a_tied_output_costs_a_bottleneck_or_nothing() -> None:
    plain = built("additive", hidden_dim=N, readout_dim=L)
    bottleneck = M * L
    tied = built("additive", hidden_dim=N, readout_dim=L, tie_output=True)
    assert tied == plain - Y * L + bottleneck
    alike = built("additive", hidden_dim=N, readout_dim=M)
    assert built("additive", hidden_dim=N, readout_dim=M, tie_output=True) == alike - Y * M


def test_the_default_widths_follow_the_decoder_and_the_embedding() -> None:
    config = RecurrentConfig(embed_dim=M, hidden_dim=N, encoder_hidden_dim=K)
    spelled = RecurrentConfig(
        embed_dim=M, hidden_dim=N, encoder_hidden_dim=K, attention_hidden_dim=N, readout_dim=M
    )
    of_default, of_spelled = (
        {name: value.shape for name, value in build(c, X, Y).state_dict().items()}
        for c in (config, spelled)
    )
    assert of_default == of_spelled


def test_a_shared_embedding_is_counted_once() -> None:
    config = RecurrentConfig(embed_dim=M, hidden_dim=N, encoder_hidden_dim=K, tie_source=True)
    apart = config.model_copy(update={"tie_source": False})
    one, two = (sum(p.numel() for p in build(c, X, X).parameters()) for c in (config, apart))
    assert one == two - X * M

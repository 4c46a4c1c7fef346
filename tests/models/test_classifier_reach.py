"""How far the first token sees: what it is said to see is what its vector depends on."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.models import ClassifierConfig, build_classifier
from attlas.models.classifier import required_lengths, unreachable_tokens
from attlas.patterns import parse

SHAPES = (
    st.sampled_from(["everywhere", "causal"])
    | st.integers(0, 4).map("window({})".format)
    | st.integers(1, 5).map("strided({})".format)
    | st.lists(st.integers(0, 14), max_size=3).map(lambda at: f"landmarks({str(at)[1:-1]})")
    | st.integers(0, 9).map("scattered(0.1, {})".format)
)
PATTERNS = SHAPES | st.builds(
    "{}({}, {})".format, st.sampled_from(["both", "either"]), SHAPES, SHAPES
)
LAYERS = st.lists(PATTERNS, min_size=1, max_size=3)


def depends_on(patterns: list[str], keys: int) -> list[bool]:
    """Of which keys the gradient of the logits knows, in a text of so many keys."""
    torch.manual_seed(7)
    config = ClassifierConfig(
        embed_dim=8,
        num_heads=2,
        ffn_dim=8,
        layers=len(patterns),
        patterns=tuple(patterns),
        pooling="first",
        activation="gelu",
        dropout=0.0,
    )
    model = build_classifier(config, 11, 3).double()
    read: list[torch.Tensor] = []
    model.embedding.register_forward_hook(lambda *given: read.append(given[-1]))
    logits = model(torch.randint(4, 11, (1, keys)))
    (gradient,) = torch.autograd.grad(logits.square().sum(), read)
    return (gradient[0] != 0).any(-1).tolist()


@given(patterns=LAYERS, keys=st.integers(1, 16), more=st.integers(0, 9))
def test_a_slot_is_in_reach_where_the_logits_depend_on_it(
    patterns: list[str], keys: int, more: int
) -> None:
    seen = (
        required_lengths([*map(parse, patterns)], keys + more)[:keys] <= keys
    )  # a longer text needs no other answer
    assert seen.tolist() == depends_on(patterns, keys)


@given(radius=st.integers(0, 5), layers=st.integers(1, 4), length=st.integers(0, 60))
def test_a_window_reaches_as_far_as_all_layers_together(
    radius: int, layers: int, length: int
) -> None:
    (unseen,) = unreachable_tokens([parse(f"window({radius})")] * layers, [length])
    assert unseen == max(0, length - 1 - radius * layers)


@given(patterns=LAYERS, lengths=st.lists(st.integers(0, 40), min_size=1))
def test_a_landmark_in_every_layer_lets_the_first_token_see_all(
    patterns: list[str], lengths: list[int]
) -> None:
    seeing = [parse(f"either({pattern}, landmarks(0))") for pattern in patterns]
    assert unreachable_tokens(seeing, lengths) == [0] * len(lengths)


def test_a_landmark_that_a_text_does_not_reach_helps_only_longer_ones() -> None:
    patterns = [parse("either(window(1), landmarks(9))")] * 2
    assert unreachable_tokens(patterns, [3, 8, 9, 30]) == [0, 5, 0, 0]


def test_a_long_text_is_asked_about_in_parts() -> None:
    patterns = [parse("strided(2)"), parse("strided(3)"), parse("window(1)")]
    alike = required_lengths(patterns, 9000)
    assert (alike[:8998] <= 9000).all()

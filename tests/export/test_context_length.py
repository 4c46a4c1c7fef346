"""How long a text may be that an exported classifier sees as a whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.export.onnx.classifier import seen_whole
from attlas.models import Classifier, ClassifierConfig, build_classifier
from support.exportable import small_classifier

SHAPES = (
    st.sampled_from(["everywhere", "causal"])
    | st.integers(0, 40).map("window({})".format)
    | st.integers(1, 5).map("strided({})".format)
    | st.lists(st.integers(0, 50), max_size=3).map(lambda at: f"landmarks({str(at)[1:-1]})")
)
PATTERNS = SHAPES | st.builds(
    "{}({}, {})".format, st.sampled_from(["both", "either"]), SHAPES, SHAPES
)


def first_pooled(*patterns: str, **settings: object) -> tuple[Classifier, ClassifierConfig]:
    config = small_classifier(pooling="first", patterns=patterns, layers=len(patterns), **settings)
    return build_classifier(config, 21, 3), config


@given(patterns=st.lists(PATTERNS, min_size=1, max_size=3), longest=st.integers(2, 60))
def test_it_is_as_long_as_every_shorter_text_that_can_be_read_is_seen_as_a_whole(
    patterns: list[str], longest: int
) -> None:
    model, config = first_pooled(*patterns, positions="learned", max_positions=longest)
    unseen = model.num_unreachable(range(1, longest))
    expected = next((length for length, count in enumerate(unseen) if count), None)
    assert seen_whole(model, config) == expected


@pytest.mark.parametrize(
    ("patterns", "seen"),
    [
        (("window(70)",) * 3, 211),
        (("either(window(5000), strided(2))",), 5001),
        (("either(both(causal, strided(1)), landmarks(5000))",), 1),
        (("either(window(16), landmarks(0))",) * 2, None),
        (("either(window(1), strided(2))",) * 2, None),
        (("window(2147483647)",), 65_536),  # nobody looks further
        (("window(1000000)",), 65_536),
    ],
)
def test_without_learned_positions_it_is_as_far_as_the_patterns_name_places(
    patterns: tuple[str, ...], seen: int | None
) -> None:
    model, config = first_pooled(*patterns)
    assert seen_whole(model, config) == seen
    if seen is not None and seen < 65_536:
        assert model.num_unreachable([seen, seen + 1]) == [0, 1]


def test_a_window_wider_than_learned_positions_hides_nothing() -> None:
    for radius in (60, 1_000_000, 2_147_483_647):
        assert (
            seen_whole(*first_pooled(f"window({radius})", positions="learned", max_positions=60))
            is None
        )

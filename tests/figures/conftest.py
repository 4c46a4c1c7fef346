"""A machine with the fonts that come with matplotlib, and perhaps one for Chinese and Japanese."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import pytest
from matplotlib.font_manager import fontManager

from attlas.figures import fonts

OWN = str(Path(matplotlib.get_data_path()))


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Only what comes with matplotlib is installed."""
    own = [face for face in fontManager.ttflist if str(face.fname).startswith(OWN)]
    monkeypatch.setattr(fontManager, "ttflist", own)
    monkeypatch.setattr(fonts, "_EXTRA", "no_such_package_of_fonts")
    _forget()
    yield
    _forget()


@pytest.fixture
def machine_with_cjk(bare_machine: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The extra "cjk" is installed as well."""
    if find_spec("noto_cjk_sans_jp_regular") is None:
        pytest.skip("the extra cjk is not installed")
    monkeypatch.setattr(fonts, "_EXTRA", "noto_cjk_sans_jp_regular")
    _forget()
    yield
    _forget()


def _forget() -> None:
    fonts._chosen.cache_clear()
    fonts._faces.cache_clear()

"""A browser, for those tests that need one."""

from collections.abc import Iterator

import pytest

from support.webdriver import Driver, browser, installed


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    if installed() is None:
        pytest.skip("chromium and chromedriver are not installed")
    with browser() as opened:
        yield opened

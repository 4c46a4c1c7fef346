"""The page of a watch file, in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import attlas
from attlas.explorer.history import history_site
from support.page_visits import serving
from support.webdriver import Driver

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("browser"),
]


class Training:
    """A small model that is watched at every step."""

    def __init__(self, path: Path) -> None:
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.watch = attlas.watch(self.model, every=1, path=path, on_alarm=None)

    def step(self) -> None:
        self.model(torch.randn(2, 6, 16))
        self.watch.step()


@pytest.fixture
def training(tmp_path: Path) -> Training:
    return Training(tmp_path / "watch.jsonl")


@pytest.fixture
def url(training: Training, tmp_path: Path) -> Iterator[str]:
    training.step()
    with serving(history_site(tmp_path / "watch.jsonl")) as address:
        yield address


SHOWN = "document.querySelector('main p').textContent === args[0]"
LOADED = "document.querySelector('img')?.complete && document.querySelector('img').naturalWidth > 0"


def test_the_page_follows_the_training(driver: Driver, url: str, training: Training) -> None:
    driver.open(url)
    driver.wait(LOADED)
    driver.wait(SHOWN, "1 reading, the last at step 1.")
    assert driver.run("return document.querySelectorAll('tbody tr').length") == 8
    driver.click("a[href='?statistic=entropy']")
    driver.wait("location.search === '?statistic=entropy'")
    driver.run("document.querySelector(\"a[href='?statistic=distance']\").focus()")
    training.step()
    driver.wait(SHOWN, "2 readings, the last at step 2.")
    driver.wait(LOADED)
    focused = driver.run("return document.activeElement.getAttribute('href')")
    assert focused == "?statistic=distance"  # who reads it by keyboard keeps the place
    assert driver.run("return document.querySelector('img').src").endswith("entropy&step=2")
    assert not [line for line in driver.log("browser") if line["level"] == "SEVERE"]


def test_a_server_that_has_ended_is_said(driver: Driver, tmp_path: Path) -> None:
    training = Training(tmp_path / "watch.jsonl")
    training.step()
    with serving(history_site(tmp_path / "watch.jsonl")) as url:
        driver.open(url)
        driver.wait(LOADED)
    driver.wait("document.querySelector('#state').textContent.startsWith('attlas has ended')")
    assert driver.run("return document.querySelectorAll('tbody tr').length") == 8


@pytest.mark.parametrize("width", [320, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_page(
    driver: Driver, url: str, width: int, scheme: str
) -> None:
    driver.view(width, 900)
    driver.prefer(scheme)
    driver.open(url)
    driver.wait(LOADED)
    assert driver.violations() == []
    assert driver.run("return document.documentElement.scrollWidth") <= width
    driver.prefer()
    driver.view(1200, 900)

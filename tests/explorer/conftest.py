"""A translator that is known by heart, and a client of the explorer around it."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from attlas.explorer import app
from support.backwards import Backwards


@pytest.fixture
def translator() -> Backwards:
    return Backwards()


@pytest.fixture
def client(translator: Backwards) -> Iterator[TestClient]:
    with TestClient(app(translator), base_url="http://127.0.0.1:8642") as opened:
        yield opened

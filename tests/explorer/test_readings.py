"""Readings of long maps: how far they are, and what is kept of them."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

from attlas.explorer.answers import AnswerFolder
from attlas.explorer.api import api
from attlas.explorer.maps import Layer, MapWindow
from attlas.explorer.readings import (
    Pyramid,
    Pyramids,
    Readings,
    cut_out,
    finer,
    largest_of_groups,
    largest_of_known_rows,
)
from attlas.explorer.site import site
from attlas.explorer.tiles import read_tile, unpack
from attlas.patterns import Pattern, causal, everywhere, landmarks, window
from attlas.recording import DenseAttentionMap, FactoredAttentionMap, Trace
from attlas.recording.maps.reductions import PassCancelledError


def made(size: int = 3_000, pattern: Any = causal) -> Trace:
    query, keys = torch.randn(2, 1, 2, size, 4, generator=torch.Generator().manual_seed(1))
    trace = Trace()
    trace.record("a", FactoredAttentionMap(query, keys, 0.5, pattern, 0))
    return trace


@pytest.mark.parametrize("pattern", [causal, everywhere, window(600), landmarks(3)])
def test_a_reading_tells_the_share_that_was_read_and_ends_with_all(pattern: Pattern) -> None:
    reported: list[float] = []
    attention_map = made(pattern=pattern)["a"]
    found = largest_of_groups(
        attention_map,
        (500, 2_500),
        (0, 3_000),
        (8, 8),
        stop=threading.Event(),
        report=reported.append,
    )
    torch.testing.assert_close(
        found, attention_map.pool(rows=(500, 2_500), shape=(8, 8), how="max")[0]
    )
    assert reported == sorted(reported)
    assert len(reported) > 3
    assert reported[-1] == 1


def test_a_reading_that_nobody_waits_for_ends() -> None:
    stop = threading.Event()
    with pytest.raises(PassCancelledError):
        largest_of_groups(
            made()["a"], (0, 3_000), (0, 3_000), (8, 8), stop=stop, report=lambda _: stop.set()
        )


def test_the_share_is_that_of_the_reading_which_is_the_farthest() -> None:
    readings = Readings()
    assert readings.share("a") is None
    with readings.under_way("a") as first, readings.under_way("a") as second:
        assert readings.share("a") == 0
        first(0.2)
        second(0.5)
        assert (readings.share("a"), readings.share("b")) == (0.5, None)
    assert readings.share("a") is None
    second(0.9)  # of a thread that has not noticed yet
    assert readings.share("a") is None


@pytest.mark.parametrize(
    ("size", "shape", "cells"),
    [
        ((131_072, 131_072), (512, 512), (2_048, 2_048)),
        ((1_500, 9_000), (512, 512), (1_024, 2_048)),
        ((600, 512), (512, 512), (512, 512)),
        ((100_000, 100_000), (300, 512), (1_200, 2_048)),
    ],
)
def test_a_pyramid_has_a_whole_number_of_cells_in_each_group(
    size: tuple[int, int], shape: tuple[int, int], cells: tuple[int, int]
) -> None:
    assert finer(size, shape) == cells


@pytest.mark.parametrize("size", [3_000, 2_048, 2_999])
def test_the_picture_that_was_asked_for_is_that_of_the_pyramid_made_coarser(size: int) -> None:
    attention_map = made(size)["a"].select_heads(torch.tensor([1]))
    whole, shape = (0, size), (128, 64)
    fine = largest_of_groups(
        attention_map, whole, whole, finer((size, size), shape), hidden=-torch.inf
    )
    requested = largest_of_groups(attention_map, whole, whole, shape, hidden=-torch.inf)
    torch.testing.assert_close(
        Pyramid(fine[0], (size, size)).coarser(shape), requested, rtol=0, atol=0
    )


@pytest.mark.parametrize(
    ("rows", "keys", "shape", "groups"),
    [
        ((0, 1_000), (0, 1_000), (50, 50), (50, 50)),
        ((100, 1_100), (7, 700), (40, 64), (40, 64)),
        ((990, 1_000), (1, 2), (10, 1), (2, 1)),
        ((0, 1_000), (500, 540), (512, 512), (200, 8)),
    ],
)
def test_a_part_has_the_largest_of_all_cells_that_it_has_a_part_of(
    rows: tuple[int, int], keys: tuple[int, int], shape: tuple[int, int], groups: tuple[int, int]
) -> None:
    size = (1_200, 1_000)
    cells = torch.rand(240, 200)  # of five each
    weights = cells.repeat_interleave(5, 0).repeat_interleave(5, 1)
    part = Pyramid(cells, size).part(rows, keys, shape)[0]
    assert part.shape == groups
    spans = [
        [(low + i * (high - low) // n, low + (i + 1) * (high - low) // n) for i in range(n)]
        for (low, high), n in zip((rows, keys), groups, strict=True)
    ]
    for i, (top, bottom) in enumerate(spans[0]):
        for j, (left, right) in enumerate(spans[1]):
            inside = weights[
                top - top % 5 : -(-bottom // 5) * 5, left - left % 5 : -(-right // 5) * 5
            ]
            assert part[i, j] == inside.max()


@pytest.mark.parametrize("pattern", [causal, everywhere, window(40), window(700)])
@pytest.mark.parametrize("how", [{}, {"softcap": 2.0}, {"padded": True}, {"offset": 50}])
@pytest.mark.parametrize(
    ("rows", "keys"),
    [((0, 900), (0, 1_000)), ((300, 800), (100, 350)), ((0, 100), (600, 1_000)), ((7, 8), (3, 9))],
)
def test_a_part_whose_rows_are_known_has_the_weights_of_the_whole_map(
    pattern: Pattern, how: dict[str, Any], rows: tuple[int, int], keys: tuple[int, int]
) -> None:
    generator = torch.Generator().manual_seed(2)
    query = 3 * torch.randn(1, 1, 900, 4, generator=generator)
    seen = torch.rand(1, 1_000, generator=generator) > 0.2 if "padded" in how else None
    attention_map = FactoredAttentionMap(
        query,
        torch.randn(1, 1, 1_000, 4, generator=generator),
        0.5,
        pattern,
        how.get("offset", 0),
        token_mask=seen,
        softcap=how.get("softcap"),
    )
    log_sums = Pyramid.read(attention_map, (50, 50)).log_sums
    part = cut_out(attention_map, rows, keys)
    assert log_sums is not None
    assert part is not None
    shape = min(20, rows[1] - rows[0]), min(30, keys[1] - keys[0])
    found = largest_of_known_rows(part, log_sums[slice(*rows)], shape, hidden=-torch.inf)
    exact = largest_of_groups(attention_map, rows, keys, shape, hidden=-torch.inf)
    torch.testing.assert_close(found, exact, rtol=2e-5, atol=1e-9)


def test_what_is_no_product_of_queries_and_keys_is_not_cut_out() -> None:
    everything = (0, 4), (0, 4)
    plain = FactoredAttentionMap(torch.rand(1, 1, 4, 2), torch.rand(1, 1, 4, 2), 1.0, everywhere, 0)
    assert cut_out(DenseAttentionMap(torch.rand(1, 1, 4, 4)), *everything) is None
    assert cut_out(replace(plain, bias=torch.rand(1, 1, 4, 4)), *everything) is None
    assert cut_out(replace(plain, pattern=landmarks(0)), *everything) is None
    assert Pyramid.read(DenseAttentionMap(torch.rand(1, 1, 4, 4)), (2, 2)).log_sums is None


def test_the_least_recently_used_pyramid_goes_first() -> None:
    kept = Pyramids(most_bytes=2 * 4 * 100)
    for name in ("a", "b"):
        kept.put(name, Pyramid(torch.zeros(10, 10), (10, 10)))
    assert kept.get("a") is not None
    kept.put("c", Pyramid(torch.zeros(10, 10), (10, 10)))
    assert [kept.get(name) is None for name in "abc"] == [False, True, False]


# Through the server.


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attlas.explorer.maps._LONG", 1_000_000)


def opened(trace: Trace, answers: AnswerFolder | None = None) -> tuple[TestClient, str]:
    client = TestClient(site([api(trace, key="k", answers=answers)]), base_url="http://localhost")
    return client, f"/api/maps/{client.get('/api/texts/0').json()['map']}/0"


WHOLE = "heads=1:2&shape=64,64"


def test_a_glance_is_what_the_reading_of_the_whole_map_knows(few: None) -> None:
    client, layer = opened(made(pattern=everywhere))
    part = "heads=1:2&rows=750:1500&keys=0:3000&shape=64,64"
    assert client.get(f"{layer}/glance?{part}").status_code == 204
    before = client.get(f"{layer}?{WHOLE}").content
    glance = client.get(f"{layer}/glance?{part}")
    assert glance.status_code == 200
    exact = unpack(client.get(f"{layer}?{part}").content)
    torch.testing.assert_close(unpack(glance.content), exact, atol=2e-5, rtol=0)  # whole cells
    assert client.get(f"{layer}/glance?{WHOLE}").content == before
    for other in ("heads=0:1&shape=64,64", "heads=0:2&shape=64,64", "shape=64,64"):
        assert client.get(f"{layer}/glance?{other}").status_code == 204


def test_a_coarser_picture_is_made_of_what_is_known_and_a_finer_one_is_read(
    few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = AnswerFolder([tmp_path / "kept"], "7" * 64)
    client, layer = opened(made(pattern=everywhere), answers)
    whole, read = MapWindow.pyramid, []
    monkeypatch.setattr(
        MapWindow,
        "pyramid",
        lambda window, *rest: read.append((window.height, window.width)) or whole(window, *rest),
    )
    expected = made(pattern=everywhere)["a"][0, 1]
    for shape in ((64, 64), (32, 16), (2, 1), (50, 64), (100, 90), (64, 64), (20, 30)):
        tile = unpack(client.get(f"{layer}?heads=1:2&shape={shape[0]},{shape[1]}").content)
        bounds = [
            [i * size // cells for i in range(cells + 1)]
            for size, cells in zip(expected.shape, shape, strict=True)
        ]
        rows, keys = bounds
        corner = expected[rows[-2] : rows[-1], keys[-2] : keys[-1]].amax()
        torch.testing.assert_close(tile[0, -1, -1], corner, atol=2e-5, rtol=0)
    # The third is a part of the first, and the last two of what was read before.
    assert read == [(64, 64), (50, 64), (100, 90), (64, 64)]
    part = f"{layer}/glance?heads=1:2&rows=0:3000&shape=100,90"
    assert unpack(client.get(part).content).shape[1] == 100


def test_a_glance_tells_where_no_query_may_look(few: None) -> None:
    client, layer = opened(made())
    client.get(f"{layer}?{WHOLE}")
    part = read_tile(client.get(f"{layer}/glance?heads=1:2&keys=2000:3000&shape=64,64").content)
    assert part.hidden[0, 0].all()
    assert not part.hidden[0, -1].any()


def test_what_was_read_is_known_to_the_next_server(
    few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = AnswerFolder([tmp_path / "kept"], "7" * 64)
    client, layer = opened(made(), answers)
    client.get(f"{layer}?{WHOLE}")
    part = f"{layer}/glance?heads=1:2&rows=10:2000&shape=64,64"
    known = unpack(client.get(part).content)
    again, _ = opened(made(), AnswerFolder([tmp_path / "kept"], "7" * 64))
    torch.testing.assert_close(unpack(again.get(part).content), known, atol=2e-5, rtol=0)
    # The sums of its rows, too: an exact part reads no other keys.
    monkeypatch.setattr("attlas.explorer.maps.largest_of_groups", None)
    exact = unpack(again.get(f"{layer}?heads=1:2&rows=10:60&keys=10:60").content)
    weights = made()["a"].rows(10, 60)[0, 1, :, 10:60]
    torch.testing.assert_close(exact[0], weights, atol=2e-5, rtol=0)
    other, _ = opened(made(), AnswerFolder([tmp_path / "kept"], "8" * 64))
    monkeypatch.undo()
    assert other.get(part).status_code == 204


def test_the_page_can_ask_how_far_a_reading_is(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    whole = MapWindow.pyramid

    def slowly(window: MapWindow, layer: Layer, stop: threading.Event, reported: Any) -> Pyramid:
        reported(0.25)
        begun.set()
        go_on.wait(30)
        return whole(window, layer, stop, reported)

    client, layer = opened(made())
    with ThreadPoolExecutor(1) as pool, client:
        assert client.get(f"{layer}/progress?{WHOLE}").json() == {"share": None}
        monkeypatch.setattr(MapWindow, "pyramid", slowly)
        answer = pool.submit(client.get, f"{layer}?{WHOLE}")
        assert begun.wait(30)
        assert client.get(f"{layer}/progress?{WHOLE}").json() == {"share": 0.25}
        assert client.get(f"{layer}/progress?shape=64,64").json() == {"share": None}
        go_on.set()
        assert answer.result().status_code == 200
        assert client.get(f"{layer}/progress?{WHOLE}").json() == {"share": None}

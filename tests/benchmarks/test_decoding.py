"""What makes the comparison of decoding a fair one."""

import inspect
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import attlas.export
from attlas.cli.translate import translate
from attlas.decoding import DecodingConfig
from attlas.inference import Translator

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import decoding_speed  # noqa: E402
import decoding_ways  # noqa: E402
from agreement import OURS  # noqa: E402
from decoding_speed import exported, fastest  # noqa: E402
from decoding_ways import batched  # noqa: E402


@given(st.lists(st.integers(0, 50), max_size=100), st.integers(1, 40))
def test_a_peer_gets_every_line_once_sorted_by_length_in_full_batches(
    sizes: list[int], rows: int
) -> None:
    batches = batched(sizes, rows)
    order = [place for places in batches for place in places]
    assert sorted(order) == list(range(len(sizes)))
    assert [sizes[place] for place in order] == sorted(sizes, reverse=True)
    assert all(len(places) == rows for places in batches[:-1])
    for places in batches:  # whose length is the limit of them all
        assert sizes[places[0]] == max(sizes[place] for place in places)


class Clock:
    """A clock that stands still but while somebody translates."""

    def __init__(self) -> None:
        self.now = 0.0
        self.seen: list[tuple[str, int]] = []

    def __call__(self) -> float:
        return self.now

    def way(self, name: str, first: float, after: float) -> decoding_ways.Translate:
        def work(lines: list[str]) -> list[str]:
            warm = any(name == seen for seen, _ in self.seen)
            self.now += after if warm else first
            self.seen.append((name, len(lines)))
            return lines

        return work


def test_the_fastest_way_is_taken_and_none_pays_for_being_cold() -> None:
    clock = Clock()
    ways = {
        "slow": clock.way("slow", 1.0, 3.0),
        "cold": clock.way("cold", 9.0, 1.0),
        "fast": clock.way("fast", 1.0, 2.0),
    }
    lines = ["a line"] * 500
    assert fastest(ways, lines, clock) == "cold"
    assert [seen for seen in clock.seen if seen[1] == len(lines)] == [(n, 500) for n in ways]


def test_a_single_way_needs_no_race() -> None:
    clock = Clock()
    assert fastest({"only": clock.way("only", 1.0, 1.0)}, ["a line"], clock) == "only"
    assert clock.seen == []


def test_what_is_called_attlas_translate_reads_as_much_at_once_as_it_does() -> None:
    assert inspect.signature(translate).parameters["window"].default == decoding_ways.WINDOW
    assert inspect.signature(Translator.stream).parameters["tokens"].default == decoding_ways.TOKENS


def test_the_others_are_compared_with_the_first_of_all() -> None:
    assert next(iter(decoding_ways.CONTENDERS)) == OURS


@pytest.mark.parametrize("name", decoding_ways.EXPORTS)
def test_every_export_is_of_a_contender(name: str) -> None:
    assert name in decoding_ways.CONTENDERS


def test_a_contender_whose_export_fails_is_reported_with_the_reason_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: dict[str, object] = {}

    def export(run: Path, to: str, folder: Path, *, quantization: str, **search: object) -> None:
        searches.update({to: search})
        if to == "ctranslate2" and quantization == "float32":
            raise RuntimeError("no such layer")
        folder.mkdir()

    monkeypatch.setattr(attlas.export, "export", export)
    monkeypatch.setattr(decoding_speed, "has_bf16_instructions", lambda: None)
    refused = exported(tmp_path, tmp_path, list(decoding_ways.CONTENDERS))
    reasons = {name: form for name, form in decoding_ways.EXPORTS.items() if "float32" in form}
    expected = {name for name, form in reasons.items() if form.startswith("ctranslate2")}
    assert refused == dict.fromkeys(expected, "no such layer")
    assert searches == {"ctranslate2": {}, "huggingface": {"search": DecodingConfig()}}
    assert exported(tmp_path, tmp_path, ["attlas"]) == {}


@pytest.mark.parametrize("instructions", [True, False, None])
def test_bfloat16_is_left_out_where_it_is_known_to_be_slow(
    instructions: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding_speed, "has_bf16_instructions", lambda: instructions)
    left_out = exported(tmp_path, tmp_path, ["attlas", decoding_ways.HALVED])
    assert list(left_out) == ([decoding_ways.HALVED] if instructions is False else [])
    assert exported(tmp_path, tmp_path, ["attlas"]) == {}

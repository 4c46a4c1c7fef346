"""`attlas figure` of a part of a trace: a layer, a text, a query."""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from attlas.errors import AttlasError
from attlas.figures import maps_of
from attlas.layers import ScaledDotProductAttention
from attlas.recording import Trace, observe
from support.command_line import called

ENCODER = {".41", ".59", ".52", ".48"}  # of the first text
DECODER = {".11", ".89", ".72", ".28"}


def figure(*arguments: object) -> tuple[int, str, str]:
    return called("figure", *arguments)


def drawn(path: Path) -> tuple[set[str], set[str]]:
    """The weights and the other texts that stand in a figure."""
    found = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    texts = {text.text or "" for text in found}
    weights = {text for text in texts if re.fullmatch(r"\.\d\d", text)}
    return weights, texts - weights


def test_a_query_becomes_the_bars_of_its_own_weights(two_texts: Path, tmp_path: Path) -> None:
    for query, token, weights in ((0, "a", {".11", ".89"}), (1, "dog", {".72", ".28"})):
        path = tmp_path / f"{query}.svg"
        of_one = ("--layer", "decoder", "--query", query)
        assert figure(two_texts, *of_one, "-o", path) == (0, f"{path}\n", "")
        found, texts = drawn(path)
        assert found == weights
        assert texts >= {"ein", "Hund", "source", "attention weight"}
        assert {text for text in texts if text.startswith("“")} == {f"“{token}”"}


@pytest.mark.parametrize(
    ("layer", "weights"),
    [(None, ENCODER | DECODER), ("decoder", DECODER), ("encoder.attention", ENCODER)],
)
def test_of_a_layer_its_own_map_alone_is_drawn(
    two_texts: Path, tmp_path: Path, layer: str | None, weights: set[str]
) -> None:
    of_layer = () if layer is None else ("--layer", layer)
    assert figure(two_texts, *of_layer, "-o", tmp_path / "m.svg")[0] == 0
    found, texts = drawn(tmp_path / "m.svg")
    assert found == weights
    named = {"encoder.attention", "decoder.attention"} if layer is None else set()
    assert {text for text in texts if "attention" in text} == {*named, "attention weight"}


def test_another_row_is_another_text(two_texts: Path, tmp_path: Path) -> None:
    assert figure(two_texts, "--row", 1, "-o", tmp_path / "m.svg")[0] == 0
    weights, texts = drawn(tmp_path / "m.svg")
    assert weights == {".43", ".57", ".54", ".46", ".13", ".87", ".74", ".26"}
    assert texts >= {"zwei", "Katzen", "two", "cats"}
    assert not texts & {"ein", "Hund", "a", "dog"}


def test_tokens_that_leave_padding_unnamed_are_reported_once(
    two_texts: Path, tmp_path: Path
) -> None:
    trace = Trace.load(two_texts)
    trace.label([["ein", "Hund"], ["Katzen"]], [["a", "dog"], ["cats"]])
    trace.save(tmp_path / "t.safetensors")
    code, _, error = figure(tmp_path / "t.safetensors", "--row", 1, "-o", tmp_path / "m.svg")
    reported = "attlas: row 1 has 1 token for 2 places, some of padding: positions are shown; "
    assert (code, error) == (0, f"{reported}label the padding too\n")


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (("--row", 5), "a batch row from 0 to 1; got 5; choose a row of the trace"),
        (
            ("--query", 1),
            "one map to take a query of; got 2: encoder.attention; decoder.attention; choose one "
            "with --layer",
        ),
    ],
)
def test_what_is_not_there_or_not_one_thing_is_reported_with_what_helps(
    two_texts: Path, tmp_path: Path, options: tuple[object, ...], reported: str
) -> None:
    path = tmp_path / "m.svg"
    assert figure(two_texts, *options, "-o", path) == (2, "", f"attlas: expected {reported}\n")
    assert not path.exists()


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trace]:
    """A search by three beams for two texts, by a model of Hugging Face."""
    transformers = pytest.importorskip("transformers")
    each = {"layers": 1, "attention_heads": 1, "ffn_dim": 8}
    sizes = {f"{side}_{name}": n for name, n in each.items() for side in ("encoder", "decoder")}
    config = transformers.BartConfig(
        vocab_size=30, d_model=8, max_position_embeddings=32, forced_eos_token_id=None, **sizes
    )
    torch.manual_seed(0)
    model = transformers.BartForConditionalGeneration(config).eval()
    with observe(model) as trace:
        model.generate(torch.randint(4, 30, (2, 5)), num_beams=3, max_new_tokens=4)
    path = tmp_path_factory.mktemp("beams") / "beams.safetensors"
    trace.save(path)
    return path, trace


@pytest.mark.parametrize("row", range(6))
def test_each_row_of_a_beam_search_is_reached_in_the_decoder(
    searched: tuple[Path, Trace], row: int
) -> None:
    _, trace = searched
    for layer, rows in {"model.decoder": 6, "model.encoder": 2}.items():
        if row >= rows:
            with pytest.raises(AttlasError, match=f"a batch row from 0 to {rows - 1}; got {row};"):
                maps_of(trace, row, layer=layer)
            continue
        for name, found in maps_of(trace, row, layer=layer).items():
            expected = trace[name].weights()[row, 0]
            weights = torch.from_numpy(found.rows(0, len(found.target)))
            torch.testing.assert_close(weights, expected.double())


def test_a_row_that_would_be_of_several_texts_is_refused(
    searched: tuple[Path, Trace], tmp_path: Path
) -> None:
    path, trace = searched
    assert len(maps_of(trace, 0)) == 3  # the first row is of the first text in all of them
    for row in (1, 3):
        code, _, error = figure(path, "--row", row, "-o", tmp_path / "map.svg")
        assert code == 2
        assert f"row {row} would be of several texts; got 2 rows of 'model.encoder" in error
        assert "and 6 rows of 'model.decoder" in error
        advised = ("--row", row, "--layer", "model.decoder.layers.0.encoder_attn")
        assert figure(path, *advised, "-o", tmp_path / "map.svg")[0] == 0
    assert figure(path, "--row", 6, "-o", tmp_path / "map.svg")[0] == 2


def test_tokens_of_two_texts_do_not_name_the_six_rows_of_a_beam_search(
    searched: tuple[Path, Trace],
) -> None:
    _, trace = searched
    trace.label([list("abcde"), list("vwxyz")])
    (encoder,) = maps_of(trace, 1, layer="model.encoder").values()
    assert encoder.source == tuple("vwxyz")
    for row in range(6):
        (cross,) = maps_of(trace, row, layer="model.decoder.layers.0.encoder_attn").values()
        assert cross.source == tuple("01234")


def test_the_format_of_the_caller_stands_in_the_cells(two_texts: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.svg"
    chosen = ("--layer", "encoder", "--cmap", "YlOrRd", "--fmt", ".3f", "--vmax", "1")
    assert figure(two_texts, *chosen, "-o", path) == (0, f"{path}\n", "")
    weights = Trace.load(two_texts)["encoder.attention"].weights()[0, 0].double()
    assert {f"{weight:.3f}" for weight in weights.flatten().tolist()} <= drawn(path)[1]


def test_the_statistics_of_a_map_are_three_panels(two_texts: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.svg"
    assert figure(two_texts, "--layer", "encoder", "--statistics", "-o", path)[0] == 0
    weights = Trace.load(two_texts)["encoder.attention"].weights()[0, 0].double()
    entropy = -(weights * weights.log()).sum(-1)
    texts = drawn(path)[1]
    assert texts >= {"entropy in nats", "largest weight", "weights above 0.1"}
    assert f"mean {entropy.mean():.2f} · std {entropy.std(correction=0):.2f}" in texts
    largest = weights.amax(-1)
    assert f"mean {largest.mean():.2f} · std {largest.std(correction=0):.2f}" in texts


def test_a_head_of_all_layers_is_drawn(two_texts: Path, tmp_path: Path) -> None:
    assert figure(two_texts, "--head", 0, "-o", tmp_path / "a.svg")[0] == 0
    assert figure(two_texts, "-o", tmp_path / "b.svg")[0] == 0  # which have one head each
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (("--cmap", "virids"), "the name of a colormap of matplotlib; got 'virids'; did you mean"),
        (("--fmt", ".3q"), "a format of numbers, as Python's format() takes; got '.3q'"),
        (("--vmin", 1, "--vmax", 0), "--vmin below --vmax; got 1 and 0"),
        (("--vmin", 3), "vmin below vmax"),
        (("--head", 1), "a head from 0 to 0; got 1"),
        (("--statistics",), "one map to measure; got 2: encoder.attention; decoder.attention"),
        (("--statistics", "--query", 0), "no --statistics beside --query"),
        (("--query", 0, "--exact"), "no --exact beside --query; got --exact; leave one out"),
        (("--query", 0, "--cmap", "Reds"), "no --cmap beside --query; got --cmap Reds"),
        (("--statistics", "--fmt", ".3f"), "no --fmt beside --statistics; got --fmt .3f"),
    ],
)
def test_a_style_that_cannot_be_is_reported_and_nothing_is_written(
    two_texts: Path, tmp_path: Path, options: tuple[object, ...], reported: str
) -> None:
    path = tmp_path / "m.svg"
    code, out, error = figure(two_texts, *options, "-o", path)
    assert (code, out) == (2, "")
    assert error.startswith(f"attlas: expected {reported}")
    assert not path.exists()


def test_a_figure_of_many_maps_says_how_fewer_are_drawn(tmp_path: Path) -> None:
    attention = torch.nn.MultiheadAttention(26, 13, batch_first=True)
    source = torch.randn(1, 3, 26, generator=torch.Generator().manual_seed(0))
    with observe(attention) as trace:
        attention(source, source, source)
    trace.save(tmp_path / "trace.safetensors")
    command = (tmp_path / "trace.safetensors", "-o", tmp_path / "m.svg")
    code, _, error = figure(*command)
    assert code == 0
    assert f"13 maps are in {tmp_path / 'm.svg'}; draw fewer with --layer model" in error
    assert figure(*command, "--head", 0)[2] == ""


def test_of_a_long_trace_a_sample_is_drawn_and_all_of_it_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attention = ScaledDotProductAttention()
    x = torch.randn(1, 2100, 4)
    with observe(attention) as trace:
        attention(x, x)
    trace.save(tmp_path / "long.safetensors")
    monkeypatch.setattr(sys.modules["attlas.figures.heatmap"], "MOST_READ", 1 << 20)
    path = tmp_path / "m.svg"
    code, output, error = figure(tmp_path / "long.safetensors", "-o", path)
    assert (code, output) == (0, f"{path}\n")
    assert error == (
        "attlas: this figure is a sample: each cell shows one query of 3, and its largest weight "
        "of up to 3 keys; all weights take longer (exact=True, --exact)\n"
    )
    assert "a sample: largest attention weight of 1 of 3 queries × 3 keys" in drawn(path)[1]
    assert figure(tmp_path / "long.safetensors", "--exact", "-o", path) == (0, f"{path}\n", "")
    assert "largest attention weight of 3 × 3 tokens" in drawn(path)[1]

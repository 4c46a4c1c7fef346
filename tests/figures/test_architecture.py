"""The diagram of a model: its boxes and the parameters in them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text

from attlas import figures
from attlas.figures.architecture import architecture_of
from attlas.models import ClassifierConfig, RecurrentConfig, TransformerConfig
from attlas.models.classifier import build_classifier
from attlas.models.factory import build

SMALL = {"embed_dim": 8, "num_heads": 2, "ffn_dim": 12}
MODELS = {
    "transformer": TransformerConfig(encoder_layers=2, decoder_layers=3, **SMALL),
    "recurrent": RecurrentConfig(embed_dim=6, hidden_dim=8, encoder_hidden_dim=4),
    "classifier": ClassifierConfig(layers=2, pooling="attentive", **SMALL),
}


def built(config):
    if isinstance(config, ClassifierConfig):
        return build_classifier(config, 17, 3)
    return build(config, 17, 17 if getattr(config, "tie_source", False) else 19)


def texts(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


BLOCKS = {
    "embed_dim": st.just(8),
    "num_heads": st.just(2),
    "ffn_dim": st.sampled_from([0, 12]),
    "positions": st.sampled_from(["sinusoidal", "learned", "rotary", "none"]),
    "norm_type": st.sampled_from(["layer", "rms", "none"]),
    "residual": st.booleans(),
    "bias": st.booleans(),
    "num_kv_heads": st.sampled_from([None, 1, 2]),
    "qk_norm": st.booleans(),
}
TIES = {"tie_output": st.booleans(), "tie_source": st.booleans()}
TRANSFORMERS = {
    **BLOCKS,
    **TIES,
    "encoder_layers": st.just(3),
    "decoder_layers": st.integers(1, 3),
    "encoder_patterns": st.sampled_from([("window(2)",), ("everywhere", "window(1)", "window(1)")]),
}
CLASSIFIERS = {
    **BLOCKS,
    "layers": st.integers(1, 3),
    "pooling": st.sampled_from(["mean", "max", "first", "attentive"]),
}
RECURRENTS = {
    **TIES,
    "embed_dim": st.just(6),
    "hidden_dim": st.just(8),
    "encoder_hidden_dim": st.just(4),
    "cell": st.sampled_from(["gru", "lstm"]),
    "layers": st.integers(1, 2),
}
ATTENTIONS = [
    {"attention": "none"},
    {"attention": "additive", "coverage": True},
    {"attention": "dot", "decoder": "luong"},
    {"attention": "general", "decoder": "luong", "input_feeding": True},
    {"attention": "local", "decoder": "luong"},
    {"attention": "general", "decoder": "luong", "readout": "linear"},
    {"attention": "none", "readout": "linear_output"},
    {"attention": "concat", "readout": "tanh"},
    {"attention": "additive", "readout": "linear_output"},
]


def check_sizes(config):
    model = built(config)
    found = architecture_of(model, config)
    size = sum(parameter.numel() for parameter in model.parameters())
    assert sum(box.parameters for box in found.boxes) == size
    ends = {box.name for box in found.boxes}
    assert {name for link in found.links for name in (link.start, link.end)} <= ends | {""}


@given(st.fixed_dictionaries(TRANSFORMERS))
def test_the_parameters_in_the_boxes_are_those_of_any_transformer(settings):
    check_sizes(TransformerConfig(**settings))


@given(st.fixed_dictionaries(CLASSIFIERS))
def test_the_parameters_in_the_boxes_are_those_of_any_classifier(settings):
    check_sizes(ClassifierConfig(**settings))


@given(st.fixed_dictionaries(RECURRENTS), st.sampled_from(ATTENTIONS))
def test_the_parameters_in_the_boxes_are_those_of_any_recurrent_model(settings, attention):
    check_sizes(RecurrentConfig(**settings, **attention))


@pytest.mark.parametrize("kind", MODELS)
def test_each_box_stands_in_the_figure_with_its_parameters(kind):
    config = MODELS[kind]
    model = built(config)
    written = texts(figures.plot_architecture(model, config, title="a model"))
    numbers = [re.fullmatch(r"(?:(\d+) × )?([\d,]+)", text) for text in written]
    counted = {int(n[1] or 1) * int(n[2].replace(",", "")) for n in numbers if n}
    for box in architecture_of(model, config).boxes:
        assert box.name in written
        assert not box.detail or box.detail in written
        assert not box.parameters or box.parameters in counted
    assert "a model" in written


def test_layers_that_are_alike_are_one_group_with_their_number():
    config = TransformerConfig(
        encoder_layers=4, encoder_patterns=("everywhere", "window(2)", "window(2)", "everywhere"),
        decoder_layers=3, **SMALL,
    )  # fmt: skip
    encoder, decoder = architecture_of(built(config), config).stacks
    assert [group.repeats for group in encoder.groups] == [1, 1, 2, 1, 1]
    assert [group.repeats for group in decoder.groups] == [1, 3, 1, 1]
    assert encoder.groups[2].boxes[1].detail == "2 heads of 4, window(2)"
    written = texts(figures.plot_architecture(built(config), config))
    assert ("2 ×" in written, "3 ×" in written) == (True, True)


def test_the_diagram_of_a_recurrent_model_says_which_state_asks_and_what_takes_the_context():
    config = MODELS["recurrent"]
    found = architecture_of(built(config), config)
    names = [box.name for box in found.stacks[1].groups[0].boxes]
    assert names == ["embedding", "GRU of the decoder", "readout", "output"]
    between = found.between
    assert (between.box.name, between.keys) == ("additive attention", "GRU of the encoder")
    assert (between.asks, between.query) == ("GRU of the decoder", "previous state")
    assert between.gives == "GRU of the decoder"
    written = texts(figures.plot_architecture(built(config), config))
    assert {"previous state", "context", "keys, values"} <= set(written)
    luong = RecurrentConfig(
        embed_dim=6, hidden_dim=8, encoder_hidden_dim=4, attention="dot", decoder="luong"
    )
    found = architecture_of(built(luong), luong)
    names = [box.name for box in found.stacks[1].groups[0].boxes]
    assert names == ["embedding", "GRU of the decoder", "attentional vector", "output"]
    assert (found.between.query, found.between.gives) == ("state", "attentional vector")
    local = RecurrentConfig(
        embed_dim=6, hidden_dim=8, encoder_hidden_dim=4, attention="local", decoder="luong"
    )  # its window is that of the defaults
    between = architecture_of(built(local), local).between
    assert between.box.detail == "predictive window of 21, general"
    plain = RecurrentConfig(embed_dim=6, hidden_dim=8, encoder_hidden_dim=4, attention="none")
    assert architecture_of(built(plain), plain).between is None


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_same_model_gives_the_same_bytes(tmp_path, suffix):
    for name in ("a", "b"):
        config = MODELS["transformer"]
        figures.save(figures.plot_architecture(built(config), config), tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()

"""Settings of recurrent models: what fits together, and what is said where it does not."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.config import read_toml, write_toml
from attlas.errors import AttlasError
from attlas.models import LocalConfig, RecurrentConfig, build

WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"attention": "dot", "hidden_dim": 512, "encoder_hidden_dim": 100},
        "expected hidden_dim = 200 for dot attention: the decoder as wide as the source (2 · "
        "encoder_hidden_dim) (here); got hidden_dim = 512; set hidden_dim = 200, or use general "
        "attention",
    ),
    (
        {"attention": "dot", "hidden_dim": 512, "encoder_hidden_dim": 100, "bidirectional": False},
        "expected hidden_dim = 100 for dot attention: the decoder as wide as the source "
        "(encoder_hidden_dim) (here); got hidden_dim = 512; set hidden_dim = 100, or use general "
        "attention",
    ),
    (
        {"attention": "local", "local": {"score": "dot"}, "encoder_hidden_dim": 100},
        "expected hidden_dim = 200 for dot attention",
    ),
    (
        {"input_feeding": True},
        "expected no input_feeding with decoder = 'bahdanau', where it has no effect (here); got "
        "input_feeding = true; leave input_feeding out, or set decoder = 'luong' and choose an "
        "attention",
    ),
    (
        {"attention": "none", "coverage": True},
        "expected no coverage with attention = 'none', where it has no effect (here); got "
        "coverage = true; leave coverage out, or set attention = 'additive' or 'concat'",
    ),
    ({"attention": "none", "input_feeding": True}, "no input_feeding with attention = 'none'"),
    ({"attention": "none", "decoder": "luong"}, "no decoder with attention = 'none'"),
    ({"attention": "none", "readout": "tanh"}, "no readout with attention = 'none'"),
    (
        {"attention": "none", "readout": "linear"},
        "got readout = 'linear'; leave readout out, or set decoder = 'bahdanau' and choose an "
        "attention",
    ),
    (
        {"decoder": "luong", "readout": "linear_output"},
        "expected no readout = 'linear_output' with decoder = 'luong', whose state knows no "
        "context (here); got readout = 'linear_output'; choose readout = 'linear', which reads "
        "[state; context], or attention = 'none'",
    ),
    (
        {"decoder": "luong", "readout": "linear", "input_feeding": True},
        "expected no input_feeding with readout = 'linear', which makes no attentional vector "
        "(here); got input_feeding = true; leave one of them out",
    ),
    ({"attention": "none", "attention_dropout": 0.1}, "no attention_dropout with"),
    ({"attention": "none", "attention_hidden_dim": 9}, "no attention_hidden_dim with"),
    ({"attention": "general", "coverage": True}, "no coverage with attention = 'general'"),
    ({"attention": "general", "attention_hidden_dim": 9}, "got attention_hidden_dim = 9; leave"),
    (
        {"attention": "additive", "local": {"radius": 3}},
        "got local = {centre = 'predictive', radius = 3, score = 'general'}; leave local out, or "
        "set attention = 'local'",
    ),
    ({"decoder": "luong", "readout": "tanh"}, "no readout with decoder = 'luong'"),
    ({"decoder": "luong", "readout_dim": 3}, "no readout_dim with decoder = 'luong'"),
    ({"cell": "rnn"}, "`cell` in here: 'gru' or 'lstm'"),
    ({"layers": 0}, "`layers` in here: a number greater than or equal to 1"),
    ({"dropout": 1.0}, "`dropout` in here: a number less than 1"),
    ({"local": {"radius": 0}, "attention": "local"}, "`local.radius` in here"),
    ({"atention": "dot"}, "did you mean `attention`?"),
]


@pytest.mark.parametrize(("table", "text"), WRONG, ids=[str(table) for table, _ in WRONG])
def test_what_does_not_fit_together_says_what_to_change(table: dict[str, Any], text: str) -> None:
    with pytest.raises(AttlasError, match=re.escape(text)):
        RecurrentConfig.read(table, "here")
    with pytest.raises(AttlasError, match=re.escape(re.sub(r"\bhere\b", "RecurrentConfig", text))):
        RecurrentConfig(**table)


def test_the_defaults_are_bahdanaus_model() -> None:
    config = RecurrentConfig()
    assert (config.kind, config.attention, config.decoder) == ("recurrent", "additive", "bahdanau")
    assert config.source_dim == config.hidden_dim  # so that dot attention fits at once
    RecurrentConfig(attention="dot")


@pytest.mark.parametrize(
    "config",
    [
        RecurrentConfig(),
        RecurrentConfig(attention="none", cell="lstm"),
        RecurrentConfig(attention="local", local=LocalConfig(centre="monotonic", radius=3)),
        RecurrentConfig(decoder="luong", input_feeding=True, coverage=True, tie_output=True),
    ],
    ids=["default", "plain", "local", "luong"],
)
def test_settings_survive_toml(config: RecurrentConfig, tmp_path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(write_toml(config.model_dump()), encoding="utf-8")
    assert RecurrentConfig.read(read_toml(path), "the file") == config


@given(st.data())
def test_whatever_is_accepted_can_be_built(data: st.DataObject) -> None:
    local = st.builds(
        LocalConfig,
        centre=st.sampled_from(["monotonic", "predictive"]),
        radius=st.integers(1, 4),
        score=st.sampled_from(["dot", "general", "concat"]),
    )
    table = data.draw(
        st.fixed_dictionaries(
            {"embed_dim": st.integers(1, 3), "encoder_hidden_dim": st.integers(1, 3)},
            optional={
                "cell": st.sampled_from(["gru", "lstm"]),
                "layers": st.integers(1, 2),
                "hidden_dim": st.integers(1, 6),
                "bidirectional": st.booleans(),
                "attention": st.sampled_from(
                    ["none", "additive", "dot", "general", "concat", "local"]
                ),
                "attention_hidden_dim": st.integers(1, 3),
                "local": local,
                "coverage": st.booleans(),
                "decoder": st.sampled_from(["bahdanau", "luong"]),
                "input_feeding": st.booleans(),
                "readout": st.sampled_from(["maxout", "tanh"]),
                "tie_output": st.booleans(),
                "tie_source": st.booleans(),
            },
        )
    )
    try:
        config = RecurrentConfig.read(table, "here")
    except AttlasError as error:
        assert error.hint  # noqa: PT017 (every refusal says what to do; most draws are accepted)
        return
    model = build(config, 5, 5)
    assert (model.source_embedding is None) is config.tie_source


def test_one_shared_embedding_needs_one_vocabulary() -> None:
    with pytest.raises(
        AttlasError,
        match="one joint vocabulary for tie_source = true; got 5 source and 6 target tokens",
    ):
        build(RecurrentConfig(tie_source=True), 5, 6)


def test_a_vocabulary_without_a_token_is_the_callers_error() -> None:
    with pytest.raises(AttlasError, match="a target vocabulary of at least one token; got 0"):
        build(RecurrentConfig(), 5, 0)

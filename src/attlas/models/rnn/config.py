"""Settings of the recurrent encoder–decoders."""

from typing import Literal, Self

from pydantic import field_validator, model_validator

from attlas.config import Config
from attlas.errors import ConfigError
from attlas.models.config import Count, Share, refuse_idle


class LocalConfig(Config):
    """Luong's local attention: a window of 2 · radius + 1 positions around one position per query.

    centre: "monotonic" (local-m, the query's own position) or "predictive" (local-p, predicted
    from the query). score: how the positions in the window are scored.
    """

    centre: Literal["monotonic", "predictive"] = "predictive"
    radius: Count = 10
    score: Literal["dot", "general", "concat"] = "general"


class RecurrentConfig(Config):
    """A recurrent encoder–decoder; a setting that would have no effect is an error that says so.

    cell, layers: of the encoder and of the decoder. Widths: embedding (both languages), hidden
    (decoder), encoder_hidden_dim (per direction of the encoder). The source the decoder looks at is
    encoder_hidden_dim wide, or twice that where the encoder is bidirectional.

    attention: the score function; "none" is the plain encoder–decoder, whose decoder gets nothing
    but its initial state. attention_hidden_dim: the width inside tanh(…) of additive and concat
    attention and of local-p's prediction (left out = as hidden). local: window and score of
    attention = "local" (left out = its defaults). coverage: the attention sees where it has looked
    so far; see `Coverage`.

    decoder: "bahdanau" (the previous state asks) or "luong" (the current state asks);
    input_feeding: Luong's attentional vector enters the next step. readout: what the vocabulary
    layer of Bahdanau's wiring reads: "maxout" or "tanh" of state, last token and context,
    readout_dim wide (left out = as embedding); "linear": [state; context]; "linear_output": the
    state alone. See `Readout`.

    dropout: of embeddings, between layers and of the features; attention_dropout: of the weights.
    tie_output: the output layer's matrix is the target embedding, behind a bottleneck where their
    widths differ. tie_source: both languages share one embedding; needs a shared vocabulary.
    """

    kind: Literal["recurrent"] = "recurrent"
    cell: Literal["gru", "lstm"] = "gru"
    layers: Count = 1
    embed_dim: Count = 256
    hidden_dim: Count = 512
    encoder_hidden_dim: Count = 256
    bidirectional: bool = True
    attention: Literal["none", "additive", "dot", "general", "concat", "local"] = "additive"
    attention_hidden_dim: Count | None = None
    local: LocalConfig | None = None
    coverage: bool = False
    decoder: Literal["bahdanau", "luong"] = "bahdanau"
    input_feeding: bool = False
    readout: Literal["maxout", "tanh", "linear", "linear_output"] = "maxout"
    readout_dim: Count | None = None
    dropout: Share = 0.2
    attention_dropout: Share = 0.0
    tie_output: bool = False
    tie_source: bool = False

    @field_validator("attention", mode="before")
    @classmethod
    def _is_no_author(cls, value: object) -> object:
        """The mechanisms go by what they compute, the decoders by the authors of their papers."""
        called = {"bahdanau": "additive", "luong": "general"}
        name = value.lower() if isinstance(value, str) else ""
        if name in called:
            raise ConfigError(
                f"attention = {called[name]!r}, as the attention of this paper is called here",
                repr(value),
                f"write attention = {called[name]!r}; decoder = {name!r} names the decoder"
                + ("; the paper has 'dot', 'concat' and 'local', too" if name == "luong" else ""),
            )
        return value

    @property
    def source_dim(self) -> int:
        """The width of what the encoder gives for each source token."""
        return self.encoder_hidden_dim * (2 if self.bidirectional else 1)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        has_attention = self.attention != "none"
        local = self._local if self.attention == "local" else None
        score = local.score if local else self.attention
        if score == "dot" and self.hidden_dim != self.source_dim:
            raise ConfigError(
                f"hidden_dim = {self.source_dim} for dot attention: the decoder as wide as the "
                f"source"
                f" ({'2 · ' if self.bidirectional else ''}encoder_hidden_dim)",
                f"hidden_dim = {self.hidden_dim}",
                f"set hidden_dim = {self.source_dim}, or use general attention",
            )
        self._no_idle(
            f"attention = {self.attention!r}",
            *(() if has_attention else ("decoder", "attention_dropout")),
            *(() if local else ("local",)),
            *(() if score in ("additive", "concat") else ("coverage",)),
            *(() if self._has_attention_hidden(score, local) else ("attention_hidden_dim",)),
        )
        decoder = f"decoder = {self.decoder!r}" if has_attention else "attention = 'none'"
        self._no_idle(
            decoder,
            *(() if has_attention and self.decoder == "luong" else ("input_feeding",)),
            *(() if has_attention and self.decoder == "bahdanau" else ("readout", "readout_dim")),
        )
        if self.readout in ("linear", "linear_output"):
            self._no_idle(f"readout = {self.readout!r}", "readout_dim")
        return self

    @property
    def _local(self) -> LocalConfig:
        return self.local or LocalConfig()

    @staticmethod
    def _has_attention_hidden(score: str, local: LocalConfig | None) -> bool:
        predicts = local is not None and local.centre == "predictive"
        return predicts or score in ("additive", "concat")

    def _no_idle(self, beside: str, *names: str) -> None:
        """Refuse settings that would have no effect beside the one named."""
        refuse_idle(self, beside, {name: _CURES[name] for name in names})


_CURES = {
    "decoder": "choose an attention",
    "attention_dropout": "choose an attention",
    "local": "set attention = 'local'",
    "coverage": "set attention = 'additive' or 'concat'",
    "attention_hidden_dim": "set attention = 'additive' or 'concat'",
    "input_feeding": "set decoder = 'luong' and choose an attention",
    "readout": "set decoder = 'bahdanau' and choose an attention",
    "readout_dim": "set decoder = 'bahdanau', readout = 'maxout' and choose an attention",
}

"""Settings of the recurrent encoder–decoders."""

from typing import Literal, Self

from pydantic import field_validator, model_validator

from attlas.config import Config
from attlas.errors import ConfigError
from attlas.models.config import Count, Share, refuse_idle


class LocalConfig(Config):
    """Luong's local attention: a window of 2 · radius + 1 positions around one for each query."""

    centre: Literal["monotonic", "predictive"] = "predictive"
    """The position: that of the query ("monotonic", local-m), or one predicted from the query
    ("predictive", local-p).
    """
    radius: Count = 10
    """How many positions on each side of it are read."""
    score: Literal["dot", "general", "concat"] = "general"
    """How the positions in the window are scored."""


class RecurrentConfig(Config):
    """Settings of a recurrent encoder–decoder. A setting that would have no effect is an error."""

    kind: Literal["recurrent"] = "recurrent"
    cell: Literal["gru", "lstm"] = "gru"
    """The cell of encoder and decoder."""
    layers: Count = 1
    """How many layers the encoder has, and the decoder."""
    embed_dim: Count = 256
    """The width of the embeddings of both languages."""
    hidden_dim: Count = 512
    """The width of the decoder."""
    encoder_hidden_dim: Count = 256
    """The width of each direction of the encoder."""
    bidirectional: bool = True
    """Whether the encoder reads in both directions; its output is then twice as wide."""
    attention: Literal["none", "additive", "dot", "general", "concat", "local"] = "additive"
    """The score function; "none" is the plain encoder–decoder, whose decoder gets only its initial
    state.
    """
    attention_hidden_dim: Count | None = None
    """The width inside tanh(…) of additive and concat attention, and of the prediction of local-p.
    Left out: hidden_dim.
    """
    local: LocalConfig | None = None
    """Window and score of attention = "local". Left out: its defaults."""
    coverage: bool = False
    """Whether the attention sees where it has looked so far, see `Coverage`."""
    decoder: Literal["bahdanau", "luong"] = "bahdanau"
    """Which state is the query: the previous one ("bahdanau") or the current one ("luong")."""
    input_feeding: bool = False
    """Whether Luong's attentional vector enters the next step."""
    readout: Literal["maxout", "tanh", "linear", "linear_output"] = "maxout"
    """What the vocabulary layer reads. Of Bahdanau's decoder: "maxout" or "tanh" of state, last
    token and context; "linear": [state; context]; "linear_output": the state alone. Of Luong's:
    left out, the attentional vector; "linear": [state; context]. Without attention: the state,
    which "linear_output" says, too.
    """
    readout_dim: Count | None = None
    """The width of that readout. Left out: embed_dim."""
    dropout: Share = 0.2
    """Of embeddings, between layers and of the features."""
    attention_dropout: Share = 0.0
    """Of the attention weights."""
    tie_output: bool = False
    """Whether the matrix of the output layer is the target embedding, behind a bottleneck where
    their widths differ.
    """
    tie_source: bool = False
    """Whether both languages share one embedding; needs a shared vocabulary."""

    @field_validator("attention", mode="before")
    @classmethod
    def _is_no_author(cls, value: object) -> object:
        """Mechanisms are named by what they compute, decoders by the authors of their papers."""
        score_names = {"bahdanau": "additive", "luong": "general"}
        name = value.lower() if isinstance(value, str) else ""
        if name in score_names:
            raise ConfigError(
                f"attention = {score_names[name]!r}, as the attention of this paper is called here",
                repr(value),
                f"write attention = {score_names[name]!r}; decoder = {name!r} names the decoder"
                + ("; the paper has 'dot', 'concat' and 'local', too" if name == "luong" else ""),
            )
        return value

    @property
    def source_dim(self) -> int:
        """The width of the encoder's output for each source token."""
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
        is_luong = has_attention and self.decoder == "luong"
        self._no_idle(
            decoder,
            *(() if is_luong else ("input_feeding",)),
            *(() if has_attention and self.decoder == "bahdanau" else ("readout_dim",)),
        )
        if is_luong:
            self._luongs_readout()
        elif not has_attention and self.readout != "linear_output":
            self._no_idle(decoder, "readout")
        if self.readout in ("linear", "linear_output"):
            self._no_idle(f"readout = {self.readout!r}", "readout_dim")
        return self

    def _luongs_readout(self) -> None:
        """Refuse what Luong's decoder cannot read."""
        if self.readout == "linear_output":
            raise ConfigError(
                "no readout = 'linear_output' with decoder = 'luong', whose state knows no context",
                "readout = 'linear_output'",
                "choose readout = 'linear', which reads [state; context], or attention = 'none'",
            )
        if self.readout == "linear" and self.input_feeding:
            raise ConfigError(
                "no input_feeding with readout = 'linear', which makes no attentional vector",
                "input_feeding = true",
                "leave one of them out",
            )
        if self.readout != "linear":
            self._no_idle("decoder = 'luong'", "readout")

    @property
    def _local(self) -> LocalConfig:
        return self.local or LocalConfig()

    @staticmethod
    def _has_attention_hidden(score: str, local: LocalConfig | None) -> bool:
        predicts = local is not None and local.centre == "predictive"
        return predicts or score in ("additive", "concat")

    def _no_idle(self, combination: str, *names: str) -> None:
        """Refuse settings that would have no effect beside the one named."""
        refuse_idle(self, combination, {name: _CURES[name] for name in names})


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

"""How to search."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from attlas.config import Config
from attlas.errors import ConfigError
from attlas.ops.linear import Autocast

_MOST = 1_000_000  # beyond it numbers overflow, or memory ends
_OF_METHOD = {
    "beam": ("num_beams", "exhaustive"),
    "sample": ("temperature", "top_k", "top_p", "seed"),
}


class DecodingConfig(Config):
    """How a translation is searched for; a value out of its range is an error that says so.

    Lengths count target tokens without the end of the sentence (END). A source of n tokens (its END
    included) gets at most ⌊max_len_a · n⌋ + max_len_b target tokens; what has not ended by then is
    returned and marked as unfinished.

    The score of a hypothesis Y is log P(Y) / ((5 + |Y|) / 6)^α + β Σ log min(Σ a, 1), summed over
    source tokens and what each of them was looked at: α is length_penalty, β coverage_penalty; see
    `Penalties`.

    In bf16 and fp16, of translations that are nearly as good another may be found, in another batch
    too. Attention is computed in float32 all the same.

    A setting that the method does not use must be left at its default, which is what a run writes
    down for it.
    """

    method: Literal["beam", "greedy", "sample"] = "beam"
    """Beam search, the most probable token at each step ("greedy"), or drawing ("sample")."""
    num_beams: Annotated[int, Field(ge=1, le=_MOST)] = 5
    """How many hypotheses a beam search keeps."""
    n_best: Annotated[int, Field(ge=1, le=_MOST)] = 1
    """How many hypotheses of each sentence are returned, or drawn."""
    exhaustive: bool = False
    """Whether a beam search goes on until no better score is possible; the steps are never fewer,
    the best score never lower.
    """
    length_penalty: Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False)] = 1.0
    """α of the score: larger values favour longer translations."""
    coverage_penalty: Annotated[float, Field(ge=0.0, le=_MOST, allow_inf_nan=False)] = 0.0
    """β of the score: larger values favour translations that look at every source token."""
    min_length: Annotated[int, Field(ge=0)] = 0
    """END is forbidden before so many tokens."""
    max_len_a: Annotated[float, Field(ge=0.0, le=1000.0, allow_inf_nan=False)] = 3.0
    """How much longer a translation may be for each source token."""
    max_len_b: Annotated[int, Field(ge=1, le=_MOST)] = 20
    """How long a translation may be beside that."""
    no_repeat_ngram: Annotated[int, Field(ge=0)] = 0
    """No n tokens in a row occur twice; 0 = off."""
    unknown: Literal["keep", "forbid", "replace"] = "keep"
    """What becomes of <unk>: it is kept, forbidden, or replaced by the source word with the largest
    attention (summed over the tokens of a word, the mean over heads and layers).
    """
    temperature: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] = 1.0
    """Of "sample": above 1, improbable tokens are drawn more often."""
    top_k: Annotated[int, Field(ge=0)] = 0
    """Of "sample": only the k most probable tokens are drawn; 0 = all."""
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Of "sample": only the most probable tokens that have this probability together are drawn."""
    seed: int = 0
    """Of "sample": the seed of what is drawn."""
    max_source_length: Annotated[int, Field(ge=0)] = 0
    """A source is cut to so many tokens, and the translation says by how many; 0 = never."""
    cuda_graphs: bool | None = None
    """Whether a greedy or beam search of a Transformer runs as CUDA graphs. Left out: no, because
    they have not been tried on a GPU yet.
    """
    autocast: Autocast = "none"
    """Half precision of the search: bf16 (on a CPU in the linear maps alone), or fp16 on CUDA."""

    @model_validator(mode="after")
    def _fits_together(self) -> "DecodingConfig":
        max_n_best = {"beam": self.num_beams, "greedy": 1, "sample": self.n_best}[self.method]
        if self.n_best > max_n_best:
            raise ConfigError(
                f"n_best of at most {max_n_best} with method = {self.method!r}",
                str(self.n_best),
                "lower n_best, or widen the beam of method = 'beam'",
            )
        fields = type(self).model_fields
        check_in_use(self.method, [k for k in fields if getattr(self, k) != fields[k].default])
        if self.cuda_graphs and self.method == "sample":
            raise ConfigError(
                "method = 'beam' or 'greedy' beside cuda_graphs = true",
                "method = 'sample', whose draws have a generator for each sentence",
                "leave decoding.cuda_graphs out",
            )
        if self.min_length > self.max_length(1):
            raise ConfigError(
                f"min_length of at most {self.max_length(1)}, the longest target of the shortest "
                "source",
                str(self.min_length),
                "raise max_len_b, or lower min_length",
            )
        return self

    def max_length(self, source_tokens: int) -> int:
        """⌊max_len_a · source_tokens⌋ + max_len_b, in target tokens."""
        return int(self.max_len_a * source_tokens) + self.max_len_b


def idle_settings(method: str) -> frozenset[str]:
    """The settings that belong to another method, and have no effect with this one."""
    return frozenset(key for other, keys in _OF_METHOD.items() if other != method for key in keys)


def with_method(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The same, with the method that they imply where none is given: `num_beams` implies "beam",
    `temperature`, `top_k` and `top_p` imply "sample".
    """
    settings = dict(settings)
    if "method" not in settings:
        if "num_beams" in settings:
            settings["method"] = "beam"
        elif {"temperature", "top_k", "top_p"} & settings.keys():
            settings["method"] = "sample"
    return settings


def check_in_use(method: str, chosen: Collection[str]) -> None:
    """Raise `AttlasError` if a setting that the user chose has no effect with this method."""
    for other, keys in _OF_METHOD.items():
        idle = [key for key in keys if key in idle_settings(method) and key in chosen]
        if idle:
            raise ConfigError(
                f"method = {other!r} for {', '.join(idle)}",
                repr(method),
                f"set method = {other!r}, or leave these out",
            )

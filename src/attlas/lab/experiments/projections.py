"""Maps of queries, keys and values that are one map, and where a decoder reads the context."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook

from attlas.lab.experiment import Claim, Context, Experiment, Measurement, Published, Source
from attlas.lab.sources import lesson
from attlas.lab.trainings import (
    SMALL_RECURRENT,
    SMALL_TRANSFORMER,
    score,
    toy_settings,
    trained,
)
from attlas.lab.verdict import All, Difference, Improvable, Provided, Rule
from attlas.layers import MultiheadAttention

TOKENS, NUMBERS = "token accuracy", "parameters"
# Which map takes the place of which.
TIES: dict[str, dict[str, str]] = {
    "three": {},
    "queries = keys": {"k_proj": "q_proj"},
    "keys = values": {"v_proj": "k_proj"},
    "one for all": {"k_proj": "q_proj", "v_proj": "q_proj"},
}


@contextmanager
def tied(ties: dict[str, str]) -> Iterator[None]:
    """Attention layers that are made meanwhile have one map in place of several."""

    def replace(owner: nn.Module, name: str, module: nn.Module | None) -> nn.Module | None:
        if isinstance(owner, MultiheadAttention) and name in ties:
            earlier: nn.Module = getattr(owner, ties[name])
            return earlier
        return module

    # torch uses what a hook returns, but its annotation says None.
    handle = register_module_module_registration_hook(replace)  # type: ignore[arg-type]
    try:
        yield
    finally:
        handle.remove()


def measure_ties(context: Context) -> Iterator[Measurement]:
    """Transformers with three maps in each attention, with two, and with one."""
    s = context.settings
    settings = [*toy_settings("reverse", (s["length"], s["length"]), s["updates"]), *s["recipe"]]
    for name, ties in TIES.items():
        with tied(ties):
            run = trained(context, name.replace(" ", "-"), "reverse", settings)
            total = sum(parameter.numel() for parameter in run.model().parameters())
            found = score(run).token_accuracy
        yield Measurement(NUMBERS, float(total), {"maps": name})
        yield Measurement(TOKENS, found, {"maps": name})


PLACES = {
    "state and output": ("model.readout=linear",),
    "state": ("model.readout=linear_output",),
    "output": ("model.decoder=luong",),
    "output, fed back": ("model.decoder=luong", "model.input_feeding=true"),
}


def measure_places(context: Context) -> Iterator[Measurement]:
    """Decoders that read the context in one place or in two."""
    s = context.settings
    for name, place in PLACES.items():
        lengths = (s["length"], s["length"])
        settings = [*toy_settings("reverse", lengths, s["updates"]), *s["recipe"], *place]
        label = name.replace(",", "").replace(" ", "-")
        run = trained(context, label, "reverse", settings)
        yield Measurement(TOKENS, score(run).token_accuracy, {"context in": name})


def _learnt(rule: Rule, part: str, names: Iterable[str]) -> Provided:
    """The rule, where one of the models learns to reverse."""
    return Provided(rule, TOKENS, 0.9, *({part: name} for name in names))


def _more(part: str, more: str, less: str, bound: float) -> Difference:
    return Difference(TOKENS, {part: more}, {part: less}, bound)


def _improvable(rule: Rule, *names: str) -> Improvable:
    """The rule, where a decoder with the context in one of these places is not always right."""
    return Improvable(rule, TOKENS, 0.98, *({"context in": name} for name in names))


_LUONG = Source("Luong et al., 2015", "table 1", read=True)
EXPERIMENTS = (
    Experiment(
        name="projections",
        title="One map for queries, keys and values",
        method="Two-layer Transformers learn to reverse. In all of their attentions, "
        "the maps of queries, keys and values are three, or two of them are one map, or there is "
        "one map for all. Nothing makes up for the parameters that are saved.",
        measure=measure_ties,
        settings={
            "quick": {"recipe": SMALL_TRANSFORMER, "length": 10, "updates": 100},
            "full": {"recipe": SMALL_TRANSFORMER, "length": 10, "updates": 400},
        },
        seeds={"quick": 2, "full": 3},
        deterministic=(NUMBERS,),
        claims=(
            Claim(
                "Separate maps of queries, keys and values are crucial.",
                lesson("Self-attention: the big conceptual leap"),
                _learnt(
                    All(*(_more("maps", "three", name, 0.05) for name in TIES if name != "three")),
                    "maps",
                    TIES,
                ),
                "Fewer maps that are within 5 points of three.",
            ),
        ),
    ),
    Experiment(
        name="context-places",
        title="Where a decoder reads the context",
        method="GRUs with additive attention learn to reverse. The context enters the state of the "
        "decoder, or the output layer, or both. Bahdanau's decoder asks with its previous state. "
        "Luong's, whose context enters the output alone, asks with its current state. With input "
        "feeding its attentional vector enters the next state, too.",
        measure=measure_places,
        settings={
            "quick": {"recipe": SMALL_RECURRENT, "length": 10, "updates": 80},
            "full": {"recipe": SMALL_RECURRENT, "length": 10, "updates": 250},
        },
        seeds={"quick": 2, "full": 3},
        claims=(
            Claim(
                "A decoder that reads the context in two places is better than with one of them.",
                lesson("Plugging attention into seq2seq"),
                _improvable(
                    _learnt(
                        All(
                            *(
                                _more("context in", "state and output", name, 0.02)
                                for name in ("state", "output")
                            )
                        ),
                        "context in",
                        PLACES,
                    ),
                    "state",
                    "output",
                ),
                "One place that is within 2 points of both.",
                revised="it is not judged any more where one place gives more than 98 % of tokens, "
                "so that none can be better.",
            ),
            Claim(
                "Input feeding makes Luong's decoder better.",
                _LUONG,
                _improvable(
                    _learnt(
                        _more("context in", "output, fed back", "output", 0.02),
                        "context in",
                        PLACES,
                    ),
                    "output",
                ),
                "A decoder without input feeding that is within 2 points.",
                (
                    Published("BLEU, without input feeding", 16.8, _LUONG),
                    Published("BLEU, with input feeding", 18.1, _LUONG),
                ),
                revised="it is not judged any more where the decoder without input feeding is "
                "right on more than 98 % of tokens, so that none can be better.",
            ),
        ),
    ),
)

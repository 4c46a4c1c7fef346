"""Two graphs that onnxruntime runs: the encoder, and one step of the decoder."""

from importlib.resources import files
from pathlib import Path

from attlas.decoding import DecodingConfig
from attlas.errors import missing_extra
from attlas.export.base import of_longest, of_numbers, of_vocabulary
from attlas.export.onnx.builder import Graph
from attlas.export.onnx.models import (
    recurrent_decoder,
    recurrent_encoder,
    transformer_decoder,
    transformer_encoder,
)
from attlas.models import RecurrentModel
from attlas.runs.loaded import LoadedTranslator

ENCODER, DECODER, EXAMPLE = "encoder.onnx", "decoder.onnx", "translate.py"

_TAKER = "ONNX"


def write_onnx(loaded: LoadedTranslator, folder: Path) -> list[str]:
    """`encoder.onnx`, `decoder.onnx`, the vocabularies, and `translate.py`, which uses them without
    attlas; the same logits up to rounding.

    encoder: source (batch, keys) int64, token_mask (batch, keys) bool → the source's inputs of the
    decoder; for a recurrent model also past_NAME of the first step. decoder: tokens (batch,) int64,
    these inputs, and past_NAME for each NAME of its state → logits (batch, vocabulary), and each
    NAME: the past of the next step. Names and shapes are in the remarks.

    Returns:
        What a reader of the folder has to know.

    Raises:
        AttlasError: If onnx is missing, and for a model that the graphs cannot express.
    """
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise missing_extra("the export to ONNX", "onnx") from None
    if isinstance(loaded.model, RecurrentModel):
        encoder = recurrent_encoder(loaded.model)
        decoder = recurrent_decoder(loaded.model)
        remarks = _of_recurrent(encoder, decoder)
    else:
        model, config = loaded.transformer(_TAKER)
        encoder, decoder = transformer_encoder(model, config), transformer_decoder(model, config)
        remarks = _OF_TRANSFORMER
    longest, decoding = loaded.model.max_positions, loaded.decoding
    positions = {} if longest is None else {"longest": longest}
    encoder.save(folder / ENCODER, positions)
    decoder.save(folder / DECODER, {**positions, **_limits(decoding)})
    loaded.vocabularies.save(folder)
    example = files("attlas.export.onnx").joinpath("templates", "translate.py")
    (folder / EXAMPLE).write_bytes(example.read_bytes())
    return [
        *remarks,
        *([] if longest is None else [of_longest(longest, "reads and writes")]),
        "The ids 0 to 3 are padding, unknown, begin and end; a source ends with end, the first "
        f"token of a target is begin; attlas never writes {_never(decoding)}.",
        of_vocabulary(loaded.vocabularies.source),
        *_of_search(decoding),
    ]


def _never(decoding: DecodingConfig) -> str:
    return "padding, begin or unknown" if decoding.unknown == "forbid" else "padding or begin"


def _limits(decoding: DecodingConfig) -> dict[str, int | float | str]:
    """The settings that `translate.py` follows."""
    names = ["max_len_a", "max_len_b", "min_length"]
    cut = ["max_source_length"] if decoding.max_source_length else []
    forbid = ["unknown"] if decoding.unknown == "forbid" else []
    return {name: getattr(decoding, name) for name in (*names, *cut, *forbid)}


def _of_search(decoding: DecodingConfig) -> list[str]:
    notes = [
        f"python {EXAMPLE} < source > target translates lines by greedy search with numpy, "
        "onnxruntime and sentencepiece alone; a source of n tokens, its end included, gets at most "
        f"⌊{decoding.max_len_a} · n⌋ + {decoding.max_len_b} tokens. Remarks about cut and "
        "unfinished texts go to the standard error.",
    ]
    if decoding.method != "greedy":
        notes.append(
            f'attlas translates with decoding.method = "{decoding.method}", {EXAMPLE} not.'
        )
    if decoding.no_repeat_ngram:
        notes.append(
            f"attlas translates with decoding.no_repeat_ngram = {decoding.no_repeat_ngram}, "
            f"{EXAMPLE} without."
        )
    if decoding.unknown == "replace":
        notes.append(
            "attlas writes a word of the source for an unknown token (decoding.unknown), "
            f"{EXAMPLE} does not: it shows that one was written."
        )
    return [*notes, *of_numbers(decoding)]


_OF_TRANSFORMER = [
    "encoder.onnx: source (batch, keys) int64 and token_mask (batch, keys) bool, true = a token, "
    "at least one in each row → source_keys.N, source_values.N.",
    "decoder.onnx, one step: tokens (batch,) int64, token_mask, source_keys.N, source_values.N, "
    "past_keys.N, past_values.N → logits (batch, vocabulary), keys.N, values.N. The past of "
    "the first step has the shape (batch, heads, 0, width of a head); that of every other is "
    "keys and values of the step before.",
]


def _of_recurrent(encoder: Graph, decoder: Graph) -> list[str]:
    return [
        f"encoder.onnx: {encoder.signature}. In token_mask true = a token: at least one in each "
        "row, padding on the right.",
        f"decoder.onnx, one step: {decoder.signature}. past_… of the first step is the encoder's; "
        "that of every other is what the step before gave under the same name without past_. All "
        "have the batch first, so that a beam search chooses rows of each. weights, where the "
        "model looks: how much the step read of each key.",
    ]

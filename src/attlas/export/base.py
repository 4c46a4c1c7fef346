"""Shared by export formats: maps of heads, remarks, and the safetensors format."""

from pathlib import Path

import safetensors.torch
from torch import Tensor, nn

from attlas.data import Subwords, Vocabulary
from attlas.decoding import DecodingConfig
from attlas.layers import MultiheadAttention
from attlas.runs import CONFIG
from attlas.runs.loaded import LoadedCheckpoint, LoadedClassifier

# The matrices of an attention, one for every head.


Linear = tuple[Tensor, Tensor | None]
"""Weight (outputs, inputs) and bias (outputs,), if there is one."""


def all_heads(attention: MultiheadAttention) -> tuple[Linear, Linear, Linear]:
    """Query, key and value maps with as many heads of keys as of queries.

    Heads that share keys get a copy each: the same numbers, for a format without shared keys.
    """
    query = attention.q_proj.weight, attention.q_proj.bias
    group_size = attention.num_heads // attention.num_kv_heads
    return (
        query,
        _repeated(attention.k_proj, attention.num_kv_heads, group_size),
        _repeated(attention.v_proj, attention.num_kv_heads, group_size),
    )


def _repeated(linear: nn.Linear, heads: int, repeats: int) -> Linear:
    bias: Tensor | None = linear.bias
    return _copies(linear.weight, heads, repeats), None if bias is None else _copies(
        bias, heads, repeats
    )


def _copies(tensor: Tensor, heads: int, repeats: int) -> Tensor:
    """Each head's rows `repeats` times, side by side."""
    by_head = tensor.reshape(heads, -1, *tensor.shape[1:])
    return by_head.repeat_interleave(repeats, dim=0).flatten(0, 1)


OF_LABELS = (
    "The ids 0 to 3 are padding, unknown, begin and end; a text ends with end. It is read as one "
    "line: white space and <br> in all its spellings are single spaces.",
    "labels.json lists the labels: logit n is that of label n, and the probabilities are the "
    "softmax of the logits.",
)


def of_vocabulary(vocabulary: Vocabulary) -> str:
    """How text becomes ids."""
    form = vocabulary.normalization
    normalization = (
        f" A text is brought into Unicode's form {form.upper()} first" if form != "none" else ""
    )
    if isinstance(vocabulary, Subwords):
        rules = ", for which the model has rules of its own." if normalization else ""
        return (
            "A vocabulary is a sentencepiece model; a text is read with one space before it, and "
            f"the first space of what is decoded goes away.{normalization}{rules}"
        )
    end = "." if normalization else ""
    return f"Id 4 + n is token n of the list in the .json of a vocabulary.{normalization}{end}"


def of_longest(positions: int, does: str) -> str:
    """How many learned positions there are; the program that uses the model has to heed it."""
    return (
        f"It {does} at most {positions:,} tokens, ends included: more positions were never "
        "learned, and are an error of onnxruntime."
    )


def of_numbers(decoding: DecodingConfig) -> list[str]:
    """Where attlas itself does not search in float32."""
    if decoding.autocast == "none":
        return []
    return [
        f'attlas translates with decoding.autocast = "{decoding.autocast}"; this is float32, and '
        "of translations that are nearly as good it may find another."
    ]


# The weights as they are: one safetensors file, for any model.


WEIGHTS = "model.safetensors"


def write_weights(loaded: LoadedCheckpoint, folder: Path) -> list[str]:
    """`model.safetensors` (the state dict of `models.build`, or of `models.build_classifier`), the
    recipe and the vocabularies, of a classifier its labels too.

    Returns:
        Remarks for the reader of the folder, in whole sentences.
    """
    # A copy of each: safetensors refuses tensors that share memory, as tied weights do.
    tensors = {
        n: t.detach().cpu().clone().contiguous() for n, t in loaded.model.state_dict().items()
    }
    (folder / WEIGHTS).write_bytes(safetensors.torch.save(tensors, {"format": "pt"}))
    (folder / CONFIG).write_bytes((loaded.run.path / CONFIG).read_bytes())
    loaded.vocabularies.save(folder)
    return _OF_CLASSIFIER if isinstance(loaded, LoadedClassifier) else _OF_TRANSLATOR


_OF_TRANSLATOR = [
    f"{WEIGHTS} holds the state dict of the model that attlas.models.build makes of the table "
    f"[model] of {CONFIG} and the sizes of the vocabularies.",
    "The ids 0 to 3 are padding, unknown, begin and end; a source ends with end, a target "
    "begins with begin.",
]
_OF_CLASSIFIER = [
    f"{WEIGHTS} holds the state dict of the model that attlas.models.build_classifier makes of the "
    f"table [model] of {CONFIG}, the size of the vocabulary and the number of labels.",
    *OF_LABELS,
]

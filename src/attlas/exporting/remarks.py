"""What readers of more than one format have to know."""

from attlas.data import Subwords, Vocabulary
from attlas.decoding import DecodingConfig

OF_LABELS = (
    "The ids 0 to 3 are padding, unknown, begin and end; a text ends with end. It is read as one "
    "line: white space and <br> in all its spellings are single spaces.",
    "labels.json lists the labels: logit n is that of label n, and the probabilities are the "
    "softmax of the logits.",
)


def of_vocabulary(vocabulary: Vocabulary) -> str:
    """How text becomes ids."""
    form = vocabulary.normalization
    read = f" A text is brought into Unicode's form {form.upper()} first" if form != "none" else ""
    if isinstance(vocabulary, Subwords):
        rules = ", for which the model has rules of its own." if read else ""
        return (
            "A vocabulary is a sentencepiece model; a text is read with one space before it, and "
            f"the first space of what is decoded goes away.{read}{rules}"
        )
    return f"Id 4 + n is token n of the list in the .json of a vocabulary.{read}{'.' * bool(read)}"


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

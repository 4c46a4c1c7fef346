"""What a reader has to know of a classification beside its label."""

from attlas.classifying.classification import Classification
from attlas.data.amount import amount

EMPTY, UNKNOWN, UNREAD = (
    "there is no word in them",
    "none of their words is in the vocabulary, so that their labels tell nothing of them",
    "longer than the model can read: the rest of them had no part in their labels",
)
"""What there is to say, of many texts at once."""


def remarks(found: Classification) -> dict[str, str]:
    """In words, by what says the same of many; none where the text was read whole and the
    vocabulary has something of it."""
    said = {}
    if not found.text:
        said[EMPTY] = "there is no word in it"
    elif not found.known:
        said[UNKNOWN] = (
            "none of its words is in the vocabulary, so that its label tells nothing of it"
        )
    if found.unread:
        tokens = amount(found.unread, "token")
        said[UNREAD] = f"longer than the model can read: {tokens} of it had no part in its label"
    return said

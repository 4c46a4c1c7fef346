"""What a reader has to know of a classification beside its label."""

from attlas.classifying.classification import Classification
from attlas.data.amount import amount


def remarks(found: Classification) -> list[str]:
    """In words; none where the text was read whole and the vocabulary has something of it."""
    said = []
    if not found.text:
        said.append("there is no word in it")
    elif not found.known:
        said.append("none of its words is in the vocabulary, so that its label tells nothing of it")
    if found.unread:
        tokens = amount(found.unread, "token")
        said.append(f"longer than the model can read: {tokens} of it had no part in its label")
    return said

"""What a reader has to know of a translation beside its text."""

from attlas.decoding import Translation


def remarks(translation: Translation) -> list[str]:
    """In whole sentences; none where the translation is whole."""
    said = []
    if translation.cut:
        said.append(f"the last {translation.cut:,} tokens of the source were not read")
    if not translation.finished:
        said.append("the model did not end this translation: it was cut off at its longest")
    return said

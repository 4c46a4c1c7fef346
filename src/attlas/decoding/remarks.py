"""What a reader has to know of a translation beside its text."""


def remarks(cut: int, finished: bool) -> list[str]:
    """Of a `Translation` that is cut or unfinished, in sentences; none where it is whole."""
    said = []
    if cut:
        tokens = "token was" if cut == 1 else f"{cut:,} tokens were"
        said.append(
            f"The text is longer than this model is set to read: its last {tokens} left out."
        )
    if not finished:
        said.append("The model did not end this translation: it was cut off at its longest.")
    return said


CUT, UNFINISHED = (
    "These texts are longer than this model is set to read: their last tokens were left out.",
    "The model did not end these translations: they were cut off at their longest.",
)
"""The same of many translations at once."""

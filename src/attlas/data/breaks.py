"""Line breaks in HTML."""

import re

_BREAK = re.compile(r"<\s*(?:/\s*)?br\b[^<>]*>", re.IGNORECASE)


def as_one_line(text: str) -> str:
    """The words of a text with one space between them; `<br>` in all its spellings is white space.

    `<br />`, `<BR>`, `</br>`, `<br clear="all">`: what a web page was breaks its lines like this,
    and how it was set says nothing of what it means.
    """
    return " ".join(_BREAK.sub(" ", text).split())

"""Answers about one's own text, which no cache keeps."""

from starlette.responses import Response


def fresh(response: Response) -> Response:
    """The same answer, to be kept nowhere."""
    response.headers["Cache-Control"] = "no-store"
    return response

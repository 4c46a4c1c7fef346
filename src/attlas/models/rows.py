"""The rows that go on from a state."""

from attlas.errors import AttlasError


def check_rows(what: str, rows: int, came: int) -> None:
    """Errors: `AttlasError` where what comes is not one token, or one target, for each row."""
    if came != rows:
        raise AttlasError(
            f"one {what} for each of {rows} rows", str(came), "pass as many as the state has rows"
        )

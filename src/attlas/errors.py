"""The one error a caller can cause: it says what was wanted, what came, and what to do."""


class AttlasError(ValueError):
    """A mistake in what was given to attlas: `wanted W; got G; do D`.

    The command line prints it without a traceback and exits with 2; anything else that escapes is
    ours and exits with 1.
    """

    def __init__(self, wanted: str, came: str, do: str) -> None:
        self.wanted, self.came, self.do = wanted, came, do
        super().__init__(f"wanted {wanted}; got {came}; {do}")

    def __reduce__(self) -> tuple[type["AttlasError"], tuple[str, str, str]]:
        return type(self), (self.wanted, self.came, self.do)  # it travels between processes


def missing_extra(what: str, extra: str) -> AttlasError:
    """The error for a feature whose optional dependency is not installed."""
    return AttlasError(
        wanted=what,
        came="an installation without it",
        do=f"run: pip install 'attlas[{extra}]'",
    )

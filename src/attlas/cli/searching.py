"""How a run translates when the command line changes it: its [decoding] table, overridden."""

from collections.abc import Iterable

from attlas.config import overridden
from attlas.decoding import DecodingConfig
from attlas.errors import AttlasError
from attlas.runs import CONFIG, Run


def decoding_of(
    run: Run, assignments: Iterable[str] | None, beam: int | None = None, n_best: int | None = None
) -> DecodingConfig:
    """The settings of the run, with `decoding.key=value` put in, then `--beam` and `--n-best`.

    Errors: `AttlasError` for a setting of another table, which a trained run cannot change.
    """
    tables = overridden({"decoding": run.table("decoding")}, assignments or ())
    others = sorted(tables.keys() - {"decoding"})
    if others:
        raise AttlasError(
            "settings of the search, such as decoding.length_penalty=1.0",
            f"one of {', '.join(others)}",
            "train another run to change what a run is made of",
        )
    asked = {"method": "beam", "beam": beam} if beam is not None else {}
    more = {"n_best": n_best} if n_best is not None else {}
    table = {**tables["decoding"], **asked, **more}
    return DecodingConfig.read(table, f"[decoding] of {run.path / CONFIG}")

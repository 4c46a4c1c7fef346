"""How a run translates when the command line changes it: its [decoding] table, overridden."""

from collections.abc import Iterable

from attlas.config import Overridden, nearest, overridden
from attlas.config.override import SET
from attlas.decoding import DecodingConfig
from attlas.decoding.config import check_in_use, idle_settings
from attlas.errors import AttlasError, quoted
from attlas.runs import CONFIG, Run


def lists_asked_for(assignments: Iterable[str] | None, n_best: int | None) -> bool:
    """Whether the command line says how many translations of a line are wanted, `--n-best` or
    `--set decoding.n_best=`: then they are written as a list."""
    asked = overridden({"decoding": {}}, assignments or ()).assigned
    return n_best is not None or ("decoding", "n_best") in asked


def decoding_of(
    run: Run, assignments: Iterable[str] | None, beam: int | None = None, n_best: int | None = None
) -> DecodingConfig:
    """The settings of the run, with `decoding.key=value` put in, then `--beam` and `--n-best`.

    `--beam` asks for method = "beam". Where a method is asked for, the run's own n_best is left
    out, and what the run says of its own method too if that is another.

    Errors: `AttlasError` for a setting of another table, which a trained run cannot change, and for
    one that was asked for and has no effect with the method, or that is asked for in two ways.
    """
    tables = overridden({"decoding": {}}, assignments or ())
    others = sorted(tables.keys() - {"decoding"})
    if others:
        near = [f"`decoding.{name}`" for name in nearest(DecodingConfig, others[0], {})]
        raise AttlasError(
            "settings of the search, such as decoding.length_penalty=1.0",
            f"one of {', '.join(others)}",
            f"did you mean {' or '.join(near)}?"
            if near
            else "train another run to change what a run is made of",
        )
    if not isinstance(tables["decoding"], dict):
        raise AttlasError(
            "one of the settings of the search, such as decoding.method=greedy",
            f"decoding={quoted(tables['decoding'])}",
            "name the setting behind a dot",
        )
    asked = {**tables["decoding"]}
    for option, name, value in (("--beam", "beam", beam), ("--n-best", "n_best", n_best)):
        if value is not None and asked.get(name, value) != value:
            raise AttlasError(
                f"{option} or --set decoding.{name}",
                f"{option} {value} and --set decoding.{name}={asked[name]}",
                "leave one of the two out",
            )
    if beam is not None and asked.get("method", "beam") != "beam":
        raise AttlasError(
            "a search by beam for --beam",
            f"--set decoding.method={asked['method']}",
            "leave one of the two out",
        )
    asked |= {"method": "beam", "beam": beam} if beam is not None else {}
    asked |= {"n_best": n_best} if n_best is not None else {}
    where = f"[decoding] of {run.path / CONFIG}"
    own = run.table("decoding")
    method = asked.get("method")
    if method is not None:
        # How many were wanted of the run's own search says nothing of another one.
        idle = {"n_best"}
        if method != DecodingConfig.read(own, where).method:
            idle |= idle_settings(method)
        own = {key: value for key, value in own.items() if key not in idle}
    settings = Overridden(own)
    for name, value in asked.items():
        settings[name] = value
        settings.replaced((name,), value)
    options = [
        name for name, value in (("--beam", beam), ("--n-best", n_best)) if value is not None
    ]
    if options:
        settings.by = " and ".join([*options, *([SET] if tables.assigned else [])])
    config = DecodingConfig.read(settings, where)
    check_in_use(config.method, asked)
    return config

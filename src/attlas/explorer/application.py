"""The explorer around one translator, or around one trace of whatever model."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from starlette.applications import Starlette

from attlas.analysis.alignment import Reference
from attlas.explorer.api import api
from attlas.explorer.backends import TranslatorProtocol
from attlas.explorer.server import PORT, serve_apis
from attlas.explorer.site import site
from attlas.recording import Trace


def app(
    shown: TranslatorProtocol | Trace,
    hosts: Collection[str] = (),
    *,
    name: str | None = None,
    token: str | None = None,
    notes: Path | None = None,
    gold: Sequence[Reference] | None = None,
) -> Starlette:
    """The web application around one translator, or around one trace of whatever model.

    Its routes are those of `api.api`, under /api.

    Args:
        hosts: The names by which it may be called, beside localhost and its addresses.
        name: What the page calls a trace.
        token: Without which no request is answered (see `security.Guard`).
        notes: The file of the reader's notes; None = the page takes none.
        gold: Of a trace, the links of annotators for each of its texts.
    """
    return site([api(shown, name=name, notes=notes, gold=gold)], hosts, token=token)


def serve(
    shown: TranslatorProtocol | Trace,
    *,
    name: str | None = None,
    notes: Path | None = None,
    gold: Sequence[Reference] | None = None,
    host: str = "127.0.0.1",
    port: int = PORT,
    open_browser: bool = True,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve a translator, or a trace, until Ctrl-C; a translation under way is finished first.

    Args:
        name: What the page calls a trace.
        notes: The file of the reader's notes; None = the page takes none.
        gold: Of a trace, the links of annotators for each of its texts.
        host, port, open_browser, ready: See `server.serve_apis`.

    Raises:
        AttlasError: If the host is unknown, or the port is taken or not allowed; and for links of
            other texts.
    """
    serve_apis(
        [api(shown, name=name, notes=notes, gold=gold)],
        host=host,
        port=port,
        open_browser=open_browser,
        ready=ready,
    )

"""Ask the explorer's server whatever its description allows, and much that it does not.

python scripts/fuzz_explorer.py --examples 1000

schemathesis draws requests from `/api/openapi.json` of a small translator and of a trace, so many
for each route, and sends them within this process. An answer of 500 and above is a fault, and so is
a status that the description does not name. The exit code is 1 where there is one. schemathesis is
no dependency of attlas: `make fuzz-explorer` installs it into a folder of its own.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, settings
from requests import Request
from starlette.testclient import TestClient

import attlas
from attlas.analysis import Reference
from attlas.data import Characters, Vocabularies
from attlas.decoding import DecodingConfig
from attlas.explorer import app
from attlas.inference import Translator
from attlas.models import TransformerConfig, build

BASE = "http://127.0.0.1:8642"


def small_translator() -> Translator:
    """A Transformer with random weights."""
    torch.manual_seed(1)
    characters = Characters.built(["the cat sat"], size=64)
    sizes = {"embed_dim": 16, "num_heads": 2, "ffn_dim": 8, "encoder_layers": 1}
    config = TransformerConfig.read({**sizes, "decoder_layers": 1}, "a script")
    search = DecodingConfig.read({"max_len_a": 0, "max_len_b": 4}, "a script")
    model = build(config, len(characters), len(characters))
    return Translator.of(model, Vocabularies(characters, characters), search)


def small_trace() -> attlas.Trace:
    """Self-attention over two random texts, with an image of each."""
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    source = torch.randn(2, 5, 8)
    with attlas.observe(attention) as trace:
        attention(source, source, source)
    trace.label_image(torch.rand(2, 4, 4, 3).numpy(), grid=(2, 2), first=1)
    return trace


def fuzz(shown: Any, examples: int, notes: Path) -> list[str]:
    """Ask each route so many times; print a line for each. Return the faults."""
    import schemathesis

    gold = [Reference(frozenset({(0, 0)}), frozenset({(0, 0)}))] * 2
    links = gold if isinstance(shown, attlas.Trace) else None
    served = app(shown, gold=links, notes=notes)
    client = TestClient(served, base_url=BASE, raise_server_exceptions=False)
    described = client.get("/api/openapi.json").json()
    faults: list[str] = []
    for found in schemathesis.openapi.from_dict(described).get_all_operations():
        operation = found.ok()
        counts: Counter[int] = Counter()
        named = described["paths"][operation.path][operation.method]["responses"]
        cases, name = _cases(operation, examples), _maps_of_a_text(client, shown)
        for case in cases:
            path = case.path_parameters or {}
            number = counts.total()
            if "id" in path and number % 3:  # of the maps that there are, mostly
                layer = {"layer": number % 2} if "layer" in path and number % 5 else {}
                case.path_parameters = {**path, "id": name, **layer}
            request = Request(**case.as_transport_kwargs(base_url=f"{BASE}/api")).prepare()
            response = client.request(
                str(request.method),
                request.url or "",
                content=request.body,
                headers=request.headers,
            )
            status = response.status_code
            counts[status] += 1
            if (status >= 500 and status != 503) or str(status) not in named:
                faults.append(f"{operation.method} {operation.path}: {status} to {case!r}")
        answers = ", ".join(f"{count:,} × {status}" for status, count in sorted(counts.items()))
        print(f"{operation.method.upper():4} {operation.path}: {answers}", flush=True)
    return faults


def _maps_of_a_text(client: TestClient, shown: Any) -> str:
    """The name of maps that the server keeps: it forgets those of older texts."""
    if isinstance(shown, attlas.Trace):
        return str(client.get("/api/texts/0").json()["map"])
    return str(client.post("/api/translate", json={"text": "the cat"}).json()["map"])


def _cases(operation: Any, examples: int) -> list[Any]:
    """So many requests that schemathesis draws."""
    cases: list[Any] = []

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def draw(case: Any) -> None:
        cases.append(case)

    draw()
    return cases


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz a translator and a trace. Return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--examples", type=int, default=1000, help="of each route")
    options = parser.parse_args(arguments)
    faults: list[str] = []
    for kind, shown in (("translator", small_translator()), ("trace", small_trace())):
        print(f"# {kind}")
        with tempfile.TemporaryDirectory() as folder:
            faults += fuzz(shown, options.examples, Path(folder) / "notes.json")
    print("\n".join(faults[:20]) or "no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

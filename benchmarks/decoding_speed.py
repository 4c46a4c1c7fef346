"""How many sentences a second a trained run translates, from text to text, beside its exports.

One trained Transformer: attlas in plain PyTorch, CTranslate2 with the float32 and the int8 export
of the run, and `generate` of transformers with its Marian export (post-norm runs alone). Each gets
the same lines as text and gives lines back; the search is the same for all (decoding_ways.py).

How large a batch is best depends on who it is for: each contender first tries batches of so many
sentences as --batches says (attlas: of 16,384 tokens too, its default; CTranslate2: with a thread a
batch, and with all threads for each), once through all lines, and then goes on with the fastest;
which one is told. Four rows are apart: attlas in bfloat16, which no peer has on these processors,
attlas in batches of 64 sentences, attlas as `attlas translate` calls it, which sees no more than a
window of lines at once, and so with `--engine ctranslate2`.

A contender that cannot take the run, or for whose numbers the processor has no instructions, is
told as lost. A recurrent run is measured with attlas alone.
"""

import argparse
import gzip
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from agreement import OURS, agreeing, complete
from decoding_ways import CONTENDERS, EXPORTS, HALVED, Task, Ways
from measurement import called, measurement, write
from turns import serve, table, turns

from attlas.decoding import DecodingConfig
from attlas.ops.linear import has_bf16_instructions

WARM = 32  # lines, before a way is timed


def main() -> None:
    """Take turns; or, as one of the contenders, answer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, required=True, help="a folder that attlas train wrote")
    parser.add_argument("--data", type=Path, required=True, help="a line a sentence, or .gz of it")
    parser.add_argument("--threads", type=int, nargs="+", default=[os.cpu_count() or 1])
    parser.add_argument("--num-beams", type=int, nargs="+", default=[1, 5], help="1 = greedy")
    parser.add_argument(
        "--batches", type=int, nargs="+", default=[32, 64, 128, 256],
        help="of so many sentences: the best of them counts",
    )  # fmt: skip
    parser.add_argument(
        "--length-penalty", type=float, default=0.0, help="of a beam; all have their own stop"
    )
    parser.add_argument("--blocks", type=int, default=7, help="times through the data")
    parser.add_argument("--every", type=int, default=1, help="take one of so many lines")
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--json", type=Path, help="where to write what came out")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--serve", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        answer(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        refused = exported(options.run, Path(folder), options.contenders)
        found = []
        for threads in options.threads:
            for num_beams in options.num_beams:
                found.append(compared(options, Path(folder), refused, threads, num_beams))
                write(found, options.json)  # what comes later may fail


def exported(run: Path, folder: Path, contenders: Sequence[str]) -> dict[str, str]:
    """Write the folders that the contenders read; why a contender is left out, for each that is."""
    from attlas.export import export

    refused: dict[str, str] = {}
    if HALVED in contenders and has_bf16_instructions() is False:
        refused[HALVED] = "this processor has no instructions for bfloat16"
    for name in dict.fromkeys(EXPORTS[one] for one in contenders if one in EXPORTS):
        form, _, quantization = name.partition("-")
        try:
            export(run, form, folder / name, quantization=quantization, **_searching(form))
        except Exception as error:  # a peer that fails is a result
            print(f"{name}: {error}", file=sys.stderr)
            refused |= {one: str(error) for one in contenders if EXPORTS.get(one) == name}
    return refused


def _searching(form: str) -> dict[str, Any]:
    """Of what an export says of a search, nothing is the run's own: it is the same for all."""
    return {"search": DecodingConfig()} if form == "huggingface" else {}


def compared(
    options: argparse.Namespace, folder: Path, refused: dict[str, str], threads: int, num_beams: int
) -> dict[str, Any]:
    """One measurement, printed as well, with how many lines are those of attlas."""
    taking_part = [one for one in options.contenders if one not in refused]
    commands = {
        name: [
            sys.executable, __file__, "--run", str(options.run), "--data", str(options.data),
            "--threads", str(threads), "--num-beams", str(num_beams), "--every", str(options.every),
            "--batches", *map(str, options.batches), "--folder", str(folder), "--serve", name,
            "--length-penalty", str(options.length_penalty),
        ]
        for name in taking_part
    }  # fmt: skip
    played = turns(commands, options.blocks, {"OMP_NUM_THREADS": str(threads)})
    title = f"{options.run.name}, {'greedy' if num_beams == 1 else f'beam {num_beams}'}"
    if options.length_penalty:
        title = f"{title}, length penalty {options.length_penalty:g}"
    first, *_ = options.contenders
    figures = table(played.figures, "sentences/s", first)
    print(f"\n{title}, threads: {threads}\n\n{figures}\n")
    reported = measurement(
        "decoding", title, "sentences/s", threads, played, first=first,
        absent=refused, command=called(sys.argv),
    )  # fmt: skip
    found = {
        name: json.loads((folder / f"{name}.json").read_text("utf-8")) for name in played.figures
    }
    for one in reported["contenders"]:
        taken = found.get(one["name"], {}).get("taken")
        if taken is not None:
            one["taken"] = taken
            print(f"{one['name']}: {taken}")
    return reported | agreeing({name: its["lines"] for name, its in found.items()}, OURS)


def answer(options: argparse.Namespace) -> None:
    """As a contender: translate everything once a block; before the first, find the best way."""
    torch.set_num_threads(options.threads[0])
    num_beams = options.num_beams[0]
    search = DecodingConfig.model_validate(
        {"method": "greedy", "length_penalty": 0.0}
        if num_beams == 1
        else {"num_beams": num_beams, "length_penalty": options.length_penalty}
    )
    export = options.folder / EXPORTS.get(options.serve, "")
    opened = gzip.open if options.data.suffix == ".gz" else open
    with opened(options.data, "rt", encoding="utf-8", newline="\n") as file:
        lines = [line.removesuffix("\n") for line in file][:: options.every]
    taken: list[str] = []

    def block(number: int) -> float:
        if not taken:
            taken.append(fastest(ways, lines))
        start = time.perf_counter()
        found = ways[taken[0]](lines)
        passed = time.perf_counter() - start
        complete(lines, found)
        reported = {"taken": taken[0] if len(ways) > 1 else None, "lines": found}
        (options.folder / f"{options.serve}.json").write_text(
            json.dumps(reported), encoding="utf-8"
        )
        return len(lines) / passed

    with ExitStack() as held:
        task = Task(options.run, export, options.threads[0], search, options.batches, held)
        ways = CONTENDERS[options.serve](task)
        serve(block)


def fastest(ways: Ways, lines: list[str], clock: Callable[[], float] = time.perf_counter) -> str:
    """The name of the way that takes the least time for the lines, once warm."""
    if len(ways) == 1:
        return next(iter(ways))
    seconds = {}
    for name, translate in ways.items():
        translate(lines[:WARM])
        begun = clock()
        translate(lines)
        seconds[name] = clock() - begun
    return min(seconds, key=seconds.__getitem__)


if __name__ == "__main__":
    main()

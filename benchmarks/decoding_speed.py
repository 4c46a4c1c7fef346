"""How many sentences a second a trained run translates, from text to text, beside its exports.

One trained Transformer: attlas in plain PyTorch, CTranslate2 with the float32 and the int8 export
of the run, and `generate` of transformers with its Marian export (post-norm runs alone). Each gets
the same lines as text and gives lines back; all sort them by length. The same search for all: no
length penalty, and a line of n tokens gets at most 3 n + 20 (`max_length`). CTranslate2 and
transformers know one limit for a whole batch, so theirs is that of its longest line.

How large a batch is best depends on who it is for: each contender first translates everything in
batches of so many sentences as --batches says (attlas: of 4,096 tokens too, its default;
CTranslate2: with a thread a batch, and with all threads for each), and then goes on with the
fastest; which one is told. Three rows are apart: attlas in batches of 64 sentences, attlas as
`attlas translate` calls it, which sees no more than a window of lines at once, and so with
`--engine ctranslate2`.

A contender that cannot take the run is told as lost. A recurrent run is measured with attlas alone.
"""

import argparse
import gzip
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from contest import write
from measurement import measurement
from turns import serve, table, turns

from attlas.decoding import DecodingConfig, Translator

Translate = Callable[[list[str]], list[str]]
Ways = Mapping[str, Translate]  # the same translations, by what a batch is
TOKENS, WINDOW = 4096, 1024  # of a batch and of a window, where `attlas translate` is told nothing
WARM = 100  # lines, before ways are compared


@dataclass(frozen=True)
class Task:
    """What a contender has to do; export: the folder of its own, where it reads one.

    held: what is opened for as long as it works.
    """

    run: Path
    export: Path
    threads: int
    search: DecodingConfig
    batches: Sequence[int]
    held: ExitStack


def main() -> None:
    """Take turns; or, as one of the contenders, answer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, required=True, help="a folder that attlas train wrote")
    parser.add_argument("--data", type=Path, required=True, help="a line a sentence, or .gz of it")
    parser.add_argument("--threads", type=int, nargs="+", default=[os.cpu_count() or 1])
    parser.add_argument("--beam", type=int, nargs="+", default=[1, 5], help="1 = greedy")
    parser.add_argument(
        "--batches", type=int, nargs="+", default=[32, 64, 128, 256],
        help="of so many sentences: the best of them counts",
    )  # fmt: skip
    parser.add_argument("--blocks", type=int, default=7, help="times through the data")
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--json", type=Path, help="where to write what came out")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--serve", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        answer(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        exported(options.run, Path(folder), options.contenders)
        found = [
            compared(options, Path(folder), threads, beam)
            for threads in options.threads
            for beam in options.beam
        ]
    write(found, options.json)


def exported(run: Path, folder: Path, contenders: Sequence[str]) -> None:
    """The folders that the contenders read; none where a format does not take the run."""
    from attlas.errors import AttlasError
    from attlas.exporting import export

    for name in dict.fromkeys(EXPORTS[one] for one in contenders if one in EXPORTS):
        form, _, quantization = name.partition("-")
        try:
            export(run, form, folder / name, quantization=quantization)
        except AttlasError as error:
            print(f"{name}: {error}", file=sys.stderr)


def compared(options: argparse.Namespace, folder: Path, threads: int, beam: int) -> dict[str, Any]:
    """One measurement, printed as well, with how many lines are those of attlas."""
    taking_part = [
        one for one in options.contenders if one not in EXPORTS or (folder / EXPORTS[one]).exists()
    ]
    commands = {
        name: [
            sys.executable, __file__, "--run", str(options.run), "--data", str(options.data),
            "--threads", str(threads), "--beam", str(beam),
            "--batches", *map(str, options.batches), "--folder", str(folder), "--serve", name,
        ]
        for name in taking_part
    }  # fmt: skip
    played = turns(commands, options.blocks, {"OMP_NUM_THREADS": str(threads)})
    title = f"{options.run.name}, {'greedy' if beam == 1 else f'beam {beam}'}"
    print(f"\n{title}, threads: {threads}\n\n{table(played.figures, 'sentences/s')}\n")
    others = [one for one in options.contenders if one not in taking_part]
    told = measurement(
        "decoding", title, "sentences/s", threads, played,
        absent=dict.fromkeys(others, "does not take this run"),
        command=["python", "benchmarks/decoding_speed.py", *sys.argv[1:]],
    )  # fmt: skip
    found = {
        name: json.loads((folder / f"{name}.json").read_text("utf-8")) for name in played.figures
    }
    told["agreeing"] = {}
    for one in told["contenders"]:
        if "lost" in one:
            continue
        name, taken = one["name"], found[one["name"]]["taken"]
        ours, its = (found.get(x, found[name])["lines"] for x in ("attlas", name))
        told["agreeing"][name] = sum(map(str.__eq__, ours, its)) / len(its)
        if taken is not None:
            one["taken"] = taken
        same = f"{told['agreeing'][name]:.1%} of the lines are those of attlas"
        print(f"{name}: {taken}; {same}" if taken else f"{name}: {same}")
    return told


def answer(options: argparse.Namespace) -> None:
    """As a contender: translate everything once a block; before the first, find the best way."""
    torch.set_num_threads(options.threads[0])
    beam = options.beam[0]
    search = DecodingConfig.model_validate(
        {"method": "greedy", "length_penalty": 0.0}
        if beam == 1
        else {"beam": beam, "length_penalty": 0.0}
    )
    export = options.folder / EXPORTS.get(options.serve, "")
    opened = gzip.open if options.data.suffix == ".gz" else open
    with opened(options.data, "rt", encoding="utf-8", newline="\n") as file:
        lines = [line.removesuffix("\n") for line in file]
    taken: list[str] = []

    def block(number: int) -> float:
        if not taken:
            taken.append(fastest(ways, lines))
        start = time.perf_counter()
        found = ways[taken[0]](lines)
        passed = time.perf_counter() - start
        told = {"taken": taken[0] if len(ways) > 1 else None, "lines": found}
        (options.folder / f"{options.serve}.json").write_text(json.dumps(told), encoding="utf-8")
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


def batched(sizes: Sequence[int], rows: int) -> list[list[int]]:
    """The places of the lines in batches of so many of about the same size, the longest first."""
    order = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    return [order[first : first + rows] for first in range(0, len(order), rows)]


def attlas(task: Task) -> Ways:
    """Ours, in plain PyTorch, with all lines in sight."""
    translator = _translator(task)
    ways = {f"{rows} sentences": partial(_by, translator, rows, None) for rows in task.batches}
    return {f"{TOKENS:,} tokens": partial(_by, translator, None, None), **ways}


def attlas_64(task: Task) -> Ways:
    """Ours, in batches of 64 sentences."""
    return {"": partial(_by, _translator(task), 64, None)}


def attlas_windows(task: Task) -> Ways:
    """Ours, as `attlas translate` calls it."""
    return {"": partial(_by, _translator(task), None, WINDOW)}


def engine(task: Task) -> Ways:
    """`attlas translate --engine ctranslate2`."""
    from attlas.exporting.fast_translator import FastTranslator

    translator = FastTranslator(task.run, task.export, task.search)
    return {"": partial(_by, task.held.enter_context(translator.forked()), None, WINDOW)}


def _translator(task: Task) -> Translator:
    from attlas.decoding.allocator import keep_freed_memory

    keep_freed_memory()
    return task.held.enter_context(Translator(task.run, task.search).forked())


def _by(
    translator: Translator, rows: int | None, window: int | None, lines: list[str]
) -> list[str]:
    tokens = TOKENS if rows is None else sys.maxsize
    found = translator.many(lines, window=window or len(lines), tokens=tokens, rows=rows)
    return [translation.text for translation in found]


def ctranslate2(task: Task) -> Ways:
    """CTranslate2 by its own door."""
    from ctranslate2 import Translator as Engine

    from attlas.data.vocabulary import BEGIN, PAD, SPECIAL
    from attlas.exporting.ctranslate2 import names
    from attlas.runs import Run

    vocabularies = Run(task.run).vocabularies()
    source, target = names(vocabularies.source), names(vocabularies.target)
    ids = {name: id_ for id_, name in enumerate(target)}
    width = 1 if task.search.method == "greedy" else task.search.beam

    def translated(engine: Engine, rows: int, lines: list[str]) -> list[str]:
        pieces = [[source[id_] for id_ in vocabularies.source.encode(line)] for line in lines]
        batches = batched([len(one) for one in pieces], rows)
        running = [
            engine.translate_batch(
                [pieces[place] for place in places], beam_size=width, length_penalty=0.0,
                max_input_length=0, suppress_sequences=[[SPECIAL[PAD]], [SPECIAL[BEGIN]]],
                max_decoding_length=task.search.max_length(len(pieces[places[0]]) + 1),
                asynchronous=True,
            )
            for places in batches
        ]  # fmt: skip
        found = {
            place: vocabularies.target.decode([ids[name] for name in one.result().hypotheses[0]])
            for places, results in zip(batches, running, strict=True)
            for place, one in zip(places, results, strict=True)
        }
        return [found[place] for place in range(len(lines))]

    ways: dict[str, Translate] = {}
    for together in dict.fromkeys((task.threads, 1)):
        each = task.threads // together
        engine = Engine(str(task.export), inter_threads=together, intra_threads=each)
        shared = f", {each} threads each" if each > 1 else ""
        ways |= {
            f"{rows} sentences{shared}": partial(translated, engine, rows) for rows in task.batches
        }
    return ways


def transformers(task: Task) -> Ways:
    """`generate` of Marian."""
    from transformers import AutoTokenizer, MarianMTModel

    tokenizer = AutoTokenizer.from_pretrained(task.export)
    model = MarianMTModel.from_pretrained(task.export).eval()
    width = 1 if task.search.method == "greedy" else task.search.beam

    def translated(batch: int, lines: list[str]) -> list[str]:
        rows = tokenizer(lines)["input_ids"]
        found: dict[int, str] = {}
        for places in batched([len(row) for row in rows], batch):
            padded = tokenizer.pad({"input_ids": [rows[i] for i in places]}, return_tensors="pt")
            with torch.inference_mode():
                written = model.generate(
                    **padded, num_beams=width, length_penalty=0.0, do_sample=False,
                    max_new_tokens=task.search.max_length(len(rows[places[0]])),
                )  # fmt: skip
            texts = tokenizer.batch_decode(written, skip_special_tokens=True)
            found.update(zip(places, texts, strict=True))
        return [found[place] for place in range(len(lines))]

    return {f"{rows} sentences": partial(translated, rows) for rows in task.batches}


CONTENDERS: dict[str, Callable[[Task], Ways]] = {
    "attlas": attlas,
    "attlas, batches of 64": attlas_64,
    "attlas translate": attlas_windows,
    "attlas translate --engine ctranslate2": engine,
    "ctranslate2": ctranslate2,
    "ctranslate2-int8": ctranslate2,
    "transformers": transformers,
}
EXPORTS = {
    "attlas translate --engine ctranslate2": "ctranslate2-float32",
    "ctranslate2": "ctranslate2-float32",
    "ctranslate2-int8": "ctranslate2-int8",
    "transformers": "huggingface-float32",
}

if __name__ == "__main__":
    main()

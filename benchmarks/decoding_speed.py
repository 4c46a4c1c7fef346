"""How many sentences a second a trained run translates, from text to text, beside its exports.

One trained Transformer, four ways: attlas in plain PyTorch, CTranslate2 with the float32 and the
int8 export of the run, and `generate` of transformers with its Marian export (post-norm runs
alone). Each gets the same lines, sorts and splits them itself, and gives lines back: attlas into
batches of 4,096 tokens, as it does by itself, the others into batches of --batch sentences. The
search is the same: no length penalty, at most 3 n + 20 tokens for a source of n (transformers: for
the longest of a batch; CTranslate2: for the longest of all). A contender that cannot take the run
is told as lost. A recurrent run is measured with attlas alone.
"""

import argparse
import gzip
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from contest import write
from measurement import measurement
from turns import serve, table, turns

Translate = Callable[[list[str]], list[str]]
EXPORTS = {
    "ctranslate2": ("ctranslate2", "float32"),
    "ctranslate2-int8": ("ctranslate2", "int8"),
    "transformers": ("huggingface", "float32"),
}
FACTOR, CONSTANT = 3, 20  # of the greatest length


def main() -> None:
    """Take turns; or, as one of the contenders, answer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, required=True, help="a folder that attlas train wrote")
    parser.add_argument("--data", type=Path, required=True, help="a line a sentence, or .gz of it")
    parser.add_argument("--threads", type=int, nargs="+", default=[os.cpu_count() or 1])
    parser.add_argument("--beam", type=int, nargs="+", default=[1, 5], help="1 = greedy")
    parser.add_argument("--batch", type=int, default=64, help="sentences, of the others")
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
            compared(options, folder, threads, beam)
            for threads in options.threads
            for beam in options.beam
        ]
    write(found, options.json)


def exported(run: Path, folder: Path, contenders: list[str]) -> None:
    """The folders that the contenders read; none where a format does not take the run."""
    from attlas.errors import AttlasError
    from attlas.exporting import export

    for name in contenders:
        if name in EXPORTS:
            try:
                export(run, EXPORTS[name][0], folder / name, quantization=EXPORTS[name][1])
            except AttlasError as error:
                print(f"{name}: {error}", file=sys.stderr)


def compared(options: argparse.Namespace, folder: str, threads: int, beam: int) -> dict[str, Any]:
    """One measurement, printed as well, with how many lines are those of attlas."""
    taking_part = [
        name for name in options.contenders if name not in EXPORTS or Path(folder, name).exists()
    ]
    commands = {
        name: [
            sys.executable, __file__, "--run", str(options.run), "--data", str(options.data),
            "--threads", str(threads), "--beam", str(beam), "--batch", str(options.batch),
            "--folder", folder, "--serve", name,
        ]
        for name in taking_part
    }  # fmt: skip
    played = turns(commands, options.blocks, {"OMP_NUM_THREADS": str(threads)})
    title = f"{options.run.name}, {'greedy' if beam == 1 else f'beam {beam}'}"
    print(f"\n{title}, threads: {threads}\n\n{table(played.figures, 'sentences/s')}\n")
    lines = {
        name: json.loads(Path(folder, f"{name}.json").read_text("utf-8")) for name in played.figures
    }
    agreeing = {}
    for name, its in lines.items():
        ours = lines.get("attlas", its)
        agreeing[name] = sum(map(str.__eq__, ours, its)) / len(its)
        print(f"{name}: {agreeing[name]:.1%} of the lines are those of attlas")
    absent = dict.fromkeys({*options.contenders} - {*taking_part}, "does not take this run")
    command = ["python", "benchmarks/decoding_speed.py", *sys.argv[1:]]
    told = measurement(
        "decoding", title, "sentences/s", threads, played, absent=absent, command=command
    )
    return {**told, "agreeing": agreeing}


def answer(options: argparse.Namespace) -> None:
    """As a contender: translate everything once a block."""
    torch.set_num_threads(options.threads[0])
    folder = options.folder / options.serve
    translate = CONTENDERS[options.serve](
        options.run, folder, options.threads[0], options.beam[0], options.batch
    )
    opened = gzip.open if options.data.suffix == ".gz" else open
    with opened(options.data, "rt", encoding="utf-8", newline="\n") as file:
        lines = [line.removesuffix("\n") for line in file]

    def block(number: int) -> float:
        start = time.perf_counter()
        found = translate(lines)
        passed = time.perf_counter() - start
        folder.with_suffix(".json").write_text(json.dumps(found), encoding="utf-8")
        return len(lines) / passed

    serve(block)


def attlas(run: Path, folder: Path, threads: int, beam: int, batch: int) -> Translate:
    """Ours, in plain PyTorch, as `attlas translate` calls it."""
    from attlas.decoding import DecodingConfig, Translator
    from attlas.decoding.allocator import keep_freed_memory

    keep_freed_memory()
    search: dict[str, Any] = {"beam": beam} if beam > 1 else {"method": "greedy"}
    limits = {"max_length_factor": FACTOR, "max_length_constant": CONSTANT}
    config = DecodingConfig(**search, **limits, length_penalty=0.0)
    translator = Translator(run, config)

    def translate(lines: list[str]) -> list[str]:
        found = translator.many(lines, window=len(lines))
        return [translation.text for translation in found]

    return translate


def ctranslate2(run: Path, folder: Path, threads: int, beam: int, batch: int) -> Translate:
    """CTranslate2 by its own door; its threads share the batches, or one of them, as is faster."""
    from ctranslate2 import Translator

    from attlas.data.vocabulary import BEGIN, PAD, SPECIAL
    from attlas.exporting.ctranslate2 import names
    from attlas.runs import Run

    vocabularies = Run(run).vocabularies()
    source, target = names(vocabularies.source), names(vocabularies.target)
    ids = {name: id_ for id_, name in enumerate(target)}
    translator = Translator(str(folder), inter_threads=threads, intra_threads=1)

    def translate(lines: list[str]) -> list[str]:
        pieces = [[source[id_] for id_ in vocabularies.source.encode(line)] for line in lines]
        results = translator.translate_batch(
            pieces, beam_size=beam, max_batch_size=batch, length_penalty=0.0,
            max_input_length=0, suppress_sequences=[[SPECIAL[PAD]], [SPECIAL[BEGIN]]],
            max_decoding_length=FACTOR * max(map(len, pieces)) + CONSTANT,
        )  # fmt: skip
        return [vocabularies.target.decode([ids[x] for x in r.hypotheses[0]]) for r in results]

    return translate


def transformers(run: Path, folder: Path, threads: int, beam: int, batch: int) -> Translate:
    """`generate` of Marian, over batches that are sorted by length."""
    from transformers import AutoTokenizer, MarianMTModel

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = MarianMTModel.from_pretrained(folder).eval()

    def translate(lines: list[str]) -> list[str]:
        rows = tokenizer(lines)["input_ids"]
        order = sorted(range(len(lines)), key=lambda place: len(rows[place]))
        found: dict[int, str] = {}
        for first in range(0, len(order), batch):
            places = order[first : first + batch]
            padded = tokenizer.pad({"input_ids": [rows[i] for i in places]}, return_tensors="pt")
            with torch.inference_mode():
                written = model.generate(
                    **padded, num_beams=beam, length_penalty=0.0, do_sample=False,
                    max_new_tokens=FACTOR * len(rows[places[-1]]) + CONSTANT,
                )  # fmt: skip
            texts = tokenizer.batch_decode(written, skip_special_tokens=True)
            found.update(zip(places, texts, strict=True))
        return [found[place] for place in range(len(lines))]

    return translate


CONTENDERS = {
    "attlas": attlas,
    "ctranslate2": ctranslate2,
    "ctranslate2-int8": ctranslate2,
    "transformers": transformers,
}

if __name__ == "__main__":
    main()

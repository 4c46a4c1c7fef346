"""The ways in which each contender of decoding_speed.py translates, by what a batch of it is.

The same search for all: no length penalty unless one is asked for, and a line of n tokens gets at
most 3 n + 20 (`max_length`). CTranslate2 and transformers know one limit for a whole batch, so
theirs is that of its longest line. All sort the lines by length before they cut them into batches:
attlas by itself, CTranslate2 and transformers by `batched`.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from attlas.decoding import DecodingConfig
from attlas.inference import Translator

Translate = Callable[[list[str]], list[str]]
Ways = Mapping[str, Translate]  # the same translations, by what a batch is
HALVED = "attlas, bfloat16"
TOKENS, WINDOW = 16384, 1024  # of a batch and of a window, where `attlas translate` is told nothing


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


def batched(sizes: Sequence[int], rows: int) -> list[list[int]]:
    """The places of the lines in batches of so many of about the same size, the longest first."""
    order = sorted(range(len(sizes)), key=lambda place: -sizes[place])
    return [order[first : first + rows] for first in range(0, len(order), rows)]


def attlas(task: Task) -> Ways:
    """Ours, in plain PyTorch, with all lines in sight."""
    return _all_in_sight(task, _translator(task, "none"))


def attlas_halved(task: Task) -> Ways:
    """The same with `decoding.autocast = "bf16"`."""
    return _all_in_sight(task, _translator(task, "bf16"))


def _all_in_sight(task: Task, translator: Translator) -> Ways:
    ways = {f"{rows} sentences": partial(_by, translator, rows, None) for rows in task.batches}
    return {f"{TOKENS:,} tokens": partial(_by, translator, None, None), **ways}


def attlas_64(task: Task) -> Ways:
    """Ours, in batches of 64 sentences."""
    return {"": partial(_by, _translator(task, "none"), 64, None)}


def attlas_windows(task: Task) -> Ways:
    """Ours, as `attlas translate` calls it."""
    return {"": partial(_by, _translator(task, "none"), None, WINDOW)}


def engine(task: Task) -> Ways:
    """`attlas translate --engine ctranslate2`."""
    from attlas.inference.ctranslate2 import FastTranslator

    translator = FastTranslator(task.run, task.export, task.search)
    return {"": partial(_by, task.held.enter_context(translator.forked()), None, WINDOW)}


def _translator(task: Task, autocast: str) -> Translator:
    from attlas._hardware import disable_malloc_trim

    disable_malloc_trim()
    search = task.search.model_copy(update={"autocast": autocast})
    return task.held.enter_context(Translator(task.run, search).forked())


def _by(
    translator: Translator, rows: int | None, window: int | None, lines: list[str]
) -> list[str]:
    tokens = TOKENS if rows is None else sys.maxsize
    found = translator.stream(lines, window=window or len(lines), tokens=tokens, rows=rows)
    return [translation.text for translation in found]


def ctranslate2(task: Task) -> Ways:
    """CTranslate2 by its own door."""
    from ctranslate2 import Translator as Engine

    from attlas.data.vocabulary import BEGIN, PAD, SPECIAL
    from attlas.export.ctranslate2 import names
    from attlas.runs import Run

    vocabularies = Run(task.run).vocabularies()
    source, target = names(vocabularies.source), names(vocabularies.target)
    ids = {name: id_ for id_, name in enumerate(target)}
    width = 1 if task.search.method == "greedy" else task.search.num_beams

    def translated(engine: Engine, rows: int, lines: list[str]) -> list[str]:
        pieces = [[source[id_] for id_ in vocabularies.source.encode(line)] for line in lines]
        batches = batched([len(one) for one in pieces], rows)
        running = [
            engine.translate_batch(
                [pieces[place] for place in places], beam_size=width,
                length_penalty=task.search.length_penalty,
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
    width = 1 if task.search.method == "greedy" else task.search.num_beams

    def translated(batch: int, lines: list[str]) -> list[str]:
        rows = tokenizer(lines)["input_ids"]
        found: dict[int, str] = {}
        for places in batched([len(row) for row in rows], batch):
            padded = tokenizer.pad({"input_ids": [rows[i] for i in places]}, return_tensors="pt")
            with torch.inference_mode():
                written = model.generate(
                    **padded, num_beams=width, do_sample=False,
                    length_penalty=task.search.length_penalty,
                    max_new_tokens=task.search.max_length(len(rows[places[0]])),
                )  # fmt: skip
            texts = tokenizer.batch_decode(written, skip_special_tokens=True)
            found.update(zip(places, texts, strict=True))
        return [found[place] for place in range(len(lines))]

    return {f"{rows} sentences": partial(translated, rows) for rows in task.batches}


CONTENDERS: dict[str, Callable[[Task], Ways]] = {
    "attlas": attlas,
    HALVED: attlas_halved,
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

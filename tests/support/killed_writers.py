"""Translations in child processes that die; a script of tests/cli/test_translate_files_shared.py.

`python killed_writers.py RUN FOLDER` prints a JSON object: after which operations on files a
process was killed, and what went wrong. Children are forks of this process, which spares each of
them the import of torch.
"""

import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from attlas.decoding import DecodingConfig
from attlas.inference import Translator
from attlas.jobs.checkpointed_output import Shard, origin_of
from attlas.jobs.translate_files import translate_files
from attlas.runs import Run

_OPERATIONS = ("open", "write", "fsync", "replace", "unlink", "mkdir", "ftruncate", "lseek")


def work(translator: Translator, sources: list[Path], folder: Path) -> None:
    run = Run(translator.facts["run"])
    origin = origin_of(run, "best", translator, numbered=False, window=3)
    translate_files(
        translator, sources, folder, origin=origin, shard=Shard(), numbered=False, window=3
    )


def dying_after(n: int, log: Path, task: Callable[[], None]) -> None:
    """Do it, and die by SIGKILL at the n-th operation; of a write, the first half is done."""
    done = 0
    token_mask = {name: getattr(os, name) for name in _OPERATIONS}

    def counted(name: str) -> Callable[..., Any]:
        def operation(*arguments: Any, **options: Any) -> Any:
            nonlocal done
            done += 1
            if done == n and name == "write":
                arguments = (arguments[0], arguments[1][: max(1, len(arguments[1]) // 2)])
            try:
                return token_mask[name](*arguments, **options)
            finally:
                if done == n:
                    log.write_text(name)
                    os.kill(os.getpid(), signal.SIGKILL)

        return operation

    for name in _OPERATIONS:
        setattr(os, name, counted(name))
    task()


def forked(task: Callable[[], None]) -> int:
    """Run it in a child; its exit code, negative for a signal."""
    child = os.fork()
    if not child:
        code = 1
        try:
            task()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def contents(folder: Path) -> dict[str, bytes]:
    """What a user sees of it, and what is kept beside that."""
    found = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    kept = {str(p.relative_to(folder)): b"" for p in folder.rglob(".attlas/*/*")}
    return found | kept


def main(run: Path, place: Path) -> None:
    config = DecodingConfig.read({"method": "sample", "max_len_a": 0.0, "max_len_b": 4}, "the test")
    translator = Translator(run, config)
    chance = random.Random(5)
    sources = [place / name for name in ("a.txt", "b.txt.gz", "empty.txt")]
    for source, lines in zip(sources, (7, 5, 0), strict=True):
        rows = (" ".join(chance.choices("0123456", k=chance.randrange(6))) for _ in range(lines))
        source.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    work(translator, sources, place / "undisturbed")
    expected = contents(place / "undisturbed")
    wrong: list[list[Any]] = []
    names: list[str] = []
    for n in range(1, 1000):
        folder, log = place / f"out{n}", place / f"log{n}"
        code = forked(
            lambda n=n, folder=folder, log=log: dying_after(
                n, log, lambda: work(translator, sources, folder)
            )
        )
        if code == 0:
            break
        if code != -signal.SIGKILL:
            raise SystemExit(f"the translation with {n} operations ended with {code}")
        names.append(log.read_text())
        early = {p.name: p.read_bytes() for p in folder.glob("*.*") if p.is_file()}
        wrong += [[n, names[-1], k, "in part"] for k in early if early[k] != expected[k]]
        work(translator, sources, folder)
        found = contents(folder)
        wrong += [[n, names[-1], k] for k in expected | found if found.get(k) != expected.get(k)]
    print(json.dumps({"killed": len(names), "wrong": wrong, "operations": sorted(set(names))}))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), Path(sys.argv[2]))

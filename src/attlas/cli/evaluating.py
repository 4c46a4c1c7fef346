"""A test set, its translations, and a report in which no number stands alone."""

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from attlas.cli.remarks import remarks
from attlas.data import SplitName, Vocabulary, read_lines
from attlas.decoding import DecodingConfig, Translator
from attlas.errors import AttlasError
from attlas.metrics import corpus_score, token_accuracy
from attlas.runs import CONFIG, Run
from attlas.training import Recipe


@dataclass(frozen=True, slots=True)
class TestSet:
    """Sources and their references, and the SHA-256 of both."""

    __test__ = False  # for pytest: no test case

    name: str
    sources: tuple[str, ...]
    references: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Of the pairs, as `attlas.data.Corpus.checksum` counts them."""
        pairs = zip(self.sources, self.references, strict=True)
        return hashlib.sha256("".join(f"{s}\n{r}\n" for s, r in pairs).encode()).hexdigest()


def test_set_of(run: Run, source: str | None, reference: str | None, *, valid: bool) -> TestSet:
    """The two files, every line of them; without files, a split of the run's own data.

    Errors: `AttlasError` for one file without the other, and unequal numbers of lines.
    """
    if source is None and reference is None:
        split: SplitName = "valid" if valid else "test"
        corpus = Recipe.read(run.config, str(run.path / CONFIG)).data.corpus(split)
        if not corpus.pairs:
            raise AttlasError(
                f"sentence pairs in the {split} set of {run.path}",
                str(corpus.report),
                "name --source and --reference, or take --valid",
            )
        print(corpus.report, file=sys.stderr)
        begun = run.provenance().get("data", {}).get(split, {})
        if begun.get("sha256") != corpus.checksum:
            print("attlas: this data has changed since the run was trained", file=sys.stderr)
        return TestSet(corpus.name, corpus.sources, corpus.targets)
    if source is None or reference is None or valid:
        raise AttlasError(
            "--source and --reference, or neither, or --valid alone",
            "something in between",
            "name both files, or none for the run's own test set",
        )
    ours, theirs = read_lines(source), read_lines(reference)
    if len(ours) != len(theirs):
        raise AttlasError(
            "two files with the same number of lines",
            f"{len(ours):,} in {ours.name} and {len(theirs):,} in {theirs.name}",
            "make line n of one the translation of line n of the other",
        )
    return TestSet(f"{ours.name} and {theirs.name}", ours.texts, theirs.texts)


def translated(translator: Translator, tested: TestSet, output: Path | None) -> list[str]:
    """The translations, in order; written to `output` as well, one to a line."""
    console = Console(stderr=True)
    found = list(
        track(
            translator.many(tested.sources),
            "translating",
            total=len(tested.sources),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
    )
    unfit = sum(bool(remarks(translation)) for translation in found)
    if unfit:
        print(f"attlas: {unfit:,} translations were cut off at their longest", file=sys.stderr)
    texts = [translation.text for translation in found]
    if output:
        try:
            output.write_bytes("".join(f"{text}\n" for text in texts).encode())
        except OSError as error:
            raise AttlasError(
                f"to write {output}", error.strerror or str(error), "choose a folder that exists"
            ) from None
    return texts


def report_of(
    run: Run,
    checkpoint: str,
    config: DecodingConfig,
    tested: TestSet,
    translations: Sequence[str],
    vocabulary: Vocabulary,
) -> dict[str, Any]:
    """The scores, and everything that they depend on.

    token_accuracy: of the tokens into which `vocabulary` divides translation and reference.
    """
    scores = corpus_score(translations, tested.references)
    right = sum(a == b for a, b in zip(translations, tested.references, strict=True))
    tokens = [
        [vocabulary.encode(text) for text in side] for side in (translations, tested.references)
    ]
    provenance = run.provenance()
    return {
        "scores": {s.name: {"value": s.value, "signature": s.signature} for s in scores},
        "exactly_right": right / len(translations),
        "token_accuracy": token_accuracy(*tokens),
        "data": {
            "name": tested.name,
            "pairs": len(translations),
            "sha256": tested.sha256,
        },
        "decoding": config.model_dump(mode="json"),
        "run": str(run.path),
        "checkpoint": run.shelf.named(checkpoint) if checkpoint in ("best", "last") else checkpoint,
        **{key: provenance.get(key) for key in ("seed", "attlas", "commit", "torch")},
    }


def told(
    report: dict[str, Any],
    tested: TestSet,
    translations: Sequence[str],
    examples: int,
    *,
    as_json: bool,
) -> str:
    """The report for a reader, or as one JSON object."""
    pairs = zip(tested.sources, translations, tested.references, strict=True)
    right = [(source, text) for source, text, reference in pairs if text == reference]
    shown = right[:: max(1, len(right) // examples)][:examples] if examples else []
    if as_json:
        return json.dumps({**report, "examples": shown}, ensure_ascii=False, indent=2)
    data, search = report["data"], _in_use(report["decoding"])
    lines = [f"  {source}\n  → {text}\n" for source, text in shown]
    lines += [
        f"{name} = {score['value']:.2f} ({score['signature']})"
        for name, score in report["scores"].items()
    ]
    lines += [
        f"exactly right: {report['exactly_right']:.1%}",
        f"right tokens, place by place: {report['token_accuracy']:.1%}",
        f"data: {data['name']}, {data['pairs']:,} pairs, sha256 {data['sha256']}",
        f"search: {', '.join(f'{key} = {value}' for key, value in search.items())}",
        f"run: {report['run']}, checkpoint {report['checkpoint']}, seed {report['seed']}, "
        f"attlas {report['attlas']}, torch {report['torch']}, commit {report['commit']}",
    ]
    return "\n".join(lines)


def _in_use(search: dict[str, Any]) -> dict[str, Any]:
    """Without what the method does not ask for."""
    of_methods = {"beam": {"beam"}, "sample": {"temperature", "top_k", "top_p", "seed"}}
    idle = set().union(*(keys for method, keys in of_methods.items() if method != search["method"]))
    return {key: value for key, value in search.items() if key not in idle}

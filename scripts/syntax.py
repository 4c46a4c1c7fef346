"""Which attention heads of a Hugging Face encoder find which dependency relations of a treebank.

python scripts/syntax.py MODEL TREEBANK.conllu.gz                  a table: the best head of each
python scripts/syntax.py MODEL TREEBANK.conllu.gz --json --sentences 200
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import torch

import attlas
from attlas.analysis.syntax import DependencyTable, RelationHead, syntax, word_numbers
from attlas.corpus_statistics.huggingface import HuggingFaceFolder
from attlas.corpus_statistics.readers import CorpusText
from attlas.data.conllu import Sentence, read_conllu


def table_of(
    folder: Path, treebank: Path, sentences: int | None, batch: int
) -> tuple[DependencyTable, int]:
    """The table of these sentences, and how many they were.

    Of an encoder–decoder the encoder alone reads them.
    Errors: `AttlasError` for a treebank that is none, for a folder without such a model, for a
    sentence that is longer than the model reads, and for a tokenizer that does not know words.
    """
    if not HuggingFaceFolder.is_at(folder):
        raise attlas.AttlasError(
            f"a model of Hugging Face in {folder}",
            "no config.json",
            "name a folder where save_pretrained of a model and of its tokenizer put them",
        )
    model = HuggingFaceFolder(folder)
    attention_map = model.model.get_encoder() if model.writes else model.model
    spaced = _spaced(model.tokenizer)
    table, count = DependencyTable({}, {}, {}), 0
    for some in _batches(islice(read_conllu(treebank), sentences), batch):
        words = [_words(sentence.forms, spaced) for sentence in some]
        encoding = model.tokenizer(words, is_split_into_words=True, verbose=False)
        texts = _texts(model, encoding, count)
        with torch.no_grad(), attlas.observe(attention_map) as trace, model.reading():
            attention_map(**model.inputs(texts))
        table += syntax(trace, some, word_numbers(encoding))
        count += len(some)
    if not table.pairs:
        raise attlas.AttlasError(
            f"sentences with dependencies in {treebank}", "none", "name a treebank in CoNLL-U"
        )
    return table, count


def as_text(found: Sequence[RelationHead]) -> str:
    """A line for each relation; * = at least 0.1 above its baseline."""
    lines = [
        f"{'relation':<14}{'pairs':>7}  {'accuracy':>8}  {'baseline (offset)':>18}  head",
        *(
            f"{each.relation:<14}{each.pairs:>7,}  {each.accuracy:>8.3f}  "
            f"{each.baseline:>11.3f} ({each.offset:+d})".ljust(53)
            + f"{'*' if each.syntactic else ' '} {each.layer} {each.head}, {each.direction}"
            for each in found
        ),
    ]
    return "\n".join(lines)


def _spaced(tokenizer: Any) -> bool:
    """Whether words after the first are to be given with the space before them.

    Byte-level BPE (GPT-2, RoBERTa, BART) writes that space into its tokens; given word lists as
    they are, such as `word_numbers` needs, it would glue the words together, "thedog". What is
    right makes of words the tokens of their text.
    Errors: `AttlasError` where neither does.
    """
    words = ("the", "dog")
    right = tokenizer(" ".join(words), verbose=False)["input_ids"]
    for spaced in (False, True):
        if tokenizer(_words(words, spaced), is_split_into_words=True)["input_ids"] == right:
            return spaced
    raise attlas.AttlasError(
        "a tokenizer that makes the same tokens of words and of their text",
        f"other tokens for {words}",
        "name a model with another tokenizer",
    )


def _words(forms: Sequence[str], spaced: bool) -> list[str]:
    return [f" {form}" if place and spaced else form for place, form in enumerate(forms)]


def _texts(model: HuggingFaceFolder, encoding: Any, before: int) -> list[CorpusText]:
    """The sentences of a batch; before: how many have been read."""
    texts = []
    for row, ids in enumerate(encoding["input_ids"]):
        number = before + row + 1
        if model.longest is not None and len(ids) > model.longest:
            before_it = f", or what comes before: --sentences {number - 1}" if number > 1 else ""
            raise attlas.AttlasError(
                f"sentences of at most {model.longest:,} tokens, which this model can read",
                f"{len(ids):,} in sentence {number:,}",
                f"name another model{before_it}",
            )
        types = encoding["token_type_ids"][row] if "token_type_ids" in encoding else None
        texts.append(CorpusText(number, tuple(ids), types=model.types(types)))
    return texts


def _batches(sentences: Iterator[Sentence], size: int) -> Iterator[list[Sentence]]:
    while some := list(islice(sentences, size)):
        yield some


def main(arguments: Sequence[str] | None = None) -> int:
    """The program: 0 done, 2 the caller's mistake."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("model", type=Path, help="the folder of an encoder of Hugging Face")
    parser.add_argument("treebank", type=Path, help="a CoNLL-U file, plain or gzipped")
    parser.add_argument("--sentences", type=int, help="the first so many; without it, all")
    parser.add_argument("--batch", type=int, default=16, help="sentences read at once")
    parser.add_argument("--least", type=int, default=10, help="pairs of a relation that is shown")
    parser.add_argument("--json", action="store_true", help="a JSON object instead of a table")
    given = parser.parse_args(arguments)
    if given.batch < 1 or (given.sentences is not None and given.sentences < 1):
        parser.error("--batch and --sentences are numbers from 1")
    try:
        table, count = table_of(given.model, given.treebank, given.sentences, given.batch)
    except attlas.AttlasError as error:
        print(f"syntax.py: {error}", file=sys.stderr)
        return 2
    found = table.found(given.least)
    if given.json:
        rows: list[dict[str, Any]] = [
            {**asdict(each), "syntactic": each.syntactic} for each in found
        ]
        reported = {"sentences": count, "left_out": table.left_out, "relations": rows}
        print(json.dumps(reported, ensure_ascii=False, indent=1))
        return 0
    print(f"{count:,} sentences, {table.left_out:,} pairs left out: a word without a token")
    print(as_text(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())

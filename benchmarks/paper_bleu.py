"""BLEU as papers on Multi30k measure it, beside ours: `attlas evaluate RUN -o out.de`, and then

python benchmarks/paper_bleu.py out.de multi30k/test_2016_flickr.de.gz

Theirs: both sides normalised, lowercased and cut into tokens as Moses does it, and BLEU over these
tokens without smoothing (multi-bleu.perl, fairseq-generate --remove-bpe). That gives test2016 the
12,103 tokens of German that Wu et al., 2021 ("Good for Misconceived Reasons") print beside their
41.02. A translation is text here, not tokens, so it is cut the same way. Ours: cased, detokenised,
13a. It needs sacremoses, which `make bench` has: `pip install '.[test]'`.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU, BLEUScore

from attlas.data.lines import read_lines
from attlas.metrics import corpus_score


def main() -> None:
    """Print both, with their signatures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("translations", type=Path)
    parser.add_argument("references", type=Path)
    parser.add_argument("--language", default="de", help="whose tokens")
    options = parser.parse_args()
    translations, references = (
        read_lines(path).texts for path in (options.translations, options.references)
    )
    print("ours  ", corpus_score(translations, references).bleu)
    try:
        score = paper_bleu(translations, references, options.language)
    except ModuleNotFoundError:
        sys.exit("expected sacremoses for the tokens of Moses; got none; pip install sacremoses")
    print("papers", score, "(Moses' normalised tokens, lowercased, not smoothed)")


def paper_bleu(translations: Sequence[str], references: Sequence[str], language: str) -> BLEUScore:
    """The score, n-gram precisions, brevity penalty and lengths.

    Errors: `ModuleNotFoundError` without sacremoses.
    """
    ours, theirs = (_tokens(texts, language) for texts in (translations, references))
    bleu = BLEU(tokenize="none", smooth_method="none", force=True)
    score: BLEUScore = bleu.corpus_score(ours, [theirs])
    return score


def _tokens(texts: Sequence[str], language: str) -> list[str]:
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    normaliser, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)
    return [
        tokenizer.tokenize(normaliser.normalize(text).lower(), return_str=True) for text in texts
    ]


if __name__ == "__main__":
    main()

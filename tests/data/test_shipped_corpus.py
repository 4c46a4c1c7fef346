import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest

from attlas.data import ShippedData, attribution, load_splits

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "src" / "attlas" / "data" / "shipped"


@pytest.fixture(scope="module")
def splits():
    return load_splits(ShippedData())


def bare(sentence):
    return tuple(re.findall(r"\w+", sentence.casefold()))


def test_there_are_at_least_forty_thousand_pairs_and_a_thousand_for_each_check(splits):
    assert len(splits.train) >= 40_000
    assert len(splits.valid) == len(splits.test) == 1_000
    assert not any(c.report.skipped for c in (splits.train, splits.valid, splits.test))


def test_no_english_sentence_is_on_two_sides_whatever_its_case_and_punctuation(splits):
    train, valid, test = (
        {bare(source) for source in corpus.sources}
        for corpus in (splits.train, splits.valid, splits.test)
    )
    assert not train & valid
    assert not train & test
    assert not valid & test
    assert (len(valid), len(test)) == (1_000, 1_000)  # one pair for each sentence


def test_no_german_sentence_that_is_asked_for_was_trained_on(splits):
    trained = {bare(target) for target in splits.train.targets}
    assert not trained & {bare(target) for target in splits.valid.targets + splits.test.targets}


def test_it_can_be_read_in_the_other_direction(splits):
    other = load_splits(ShippedData(direction="de-en"))
    assert other.test.pairs[7] == splits.test.pairs[7][::-1]
    assert "de-en" in str(other.test.report)


def test_the_attribution_names_source_licence_date_and_changes():
    text = attribution()
    for fact in ("https://tatoeba.org", "manythings.org/anki", "CC BY 2.0 FR", "2018-05-13"):
        assert fact in text
    assert "https://creativecommons.org/licenses/by/2.0/fr/" in text
    assert "Changes:" in text


def test_it_is_small_and_its_files_carry_no_time():
    files = sorted(SHIPPED.glob("*.gz"))
    assert sum(path.stat().st_size for path in files) < 2_000_000
    assert all(path.read_bytes()[4:8] == bytes(4) for path in files)


@pytest.mark.slow
def test_the_script_makes_the_same_corpus_again(shared_data, tmp_path):
    script = ROOT / "scripts" / "ship_corpus.py"
    source = shared_data / "tatoeba" / "en-de.tsv.gz"
    command = [sys.executable, str(script), str(source), "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    for path in SHIPPED.glob("*.gz"):
        # The sentences, not the packed bytes: those depend on the zlib of the machine.
        assert gzip.decompress((tmp_path / path.name).read_bytes()) == gzip.decompress(
            path.read_bytes()
        )

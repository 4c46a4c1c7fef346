"""Labels as numbers, texts as ids, and their batches."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attlas.data import (
    END,
    BatchingConfig,
    EncodedTexts,
    FilterReport,
    LabelledBatches,
    LabelledCorpus,
    LabelledVocabularies,
    Labels,
    Words,
    encode_labelled,
    sample_labelled,
    train_subwords,
)
from attlas.data.bucketing import Ragged
from attlas.errors import AttlasError


def corpus(texts: list[str], labels: list[str]) -> LabelledCorpus:
    report = FilterReport("some", len(texts), len(texts), example="text")
    return LabelledCorpus(
        "some", tuple(texts), tuple(labels), tuple(range(1, len(texts) + 1)), report
    )


def encoded(lengths: list[int]) -> EncodedTexts:
    source = Ragged.of([4 + 50 * n + i for i in range(length)] for n, length in enumerate(lengths))
    places = tuple(f"pos/{n}.txt" for n in range(len(lengths)))
    return EncodedTexts("some", source, tuple(n % 3 for n in range(len(lengths))), places)


@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=60),
    tokens=st.integers(42, 200),
    epoch=st.integers(0, 3),
)
def test_each_text_is_in_one_batch_with_its_label_and_no_batch_is_over_budget(
    lengths: list[int], tokens: int, epoch: int
) -> None:
    texts = encoded(lengths)
    batches = LabelledBatches(texts, BatchingConfig(max_tokens=tokens, max_length=40), 1)
    order = batches.epoch(epoch)
    assert sorted(i for batch in order for i in batch) == list(range(len(lengths)))
    for indices in order:
        batch = batches.batch(indices)
        assert batch.source.numel() <= tokens
        assert batch.tokens == len(indices)
        assert batch.labels.tolist() == [texts.labels[i] for i in indices]
        for row, i in enumerate(indices):
            ids = batch.source[row][batch.source_mask[row]].tolist()
            assert ids == [*texts.source[i].tolist(), END]
    assert batches.epoch(epoch) == order


def test_texts_of_like_length_share_a_batch() -> None:
    config = BatchingConfig(max_tokens=200, max_length=50)
    batches = LabelledBatches(encoded(list(range(40)) * 5), config, 1)
    token_mask = torch.cat([batches.batch(rows).source_mask.flatten() for rows in batches.epoch(0)])
    assert token_mask.float().mean() > 0.8


@pytest.mark.parametrize(("overlong", "left"), [("skip", 1), ("cut", 2)])
def test_a_text_that_is_too_long_is_reported_by_its_place(overlong: str, left: int) -> None:
    config = BatchingConfig.read({"max_length": 5, "overlong": overlong}, "the test")
    batches = LabelledBatches(encoded([5, 9]), config, 1)
    assert sum(map(len, batches.epoch(0))) == left
    assert "1 with more than 5 tokens (pos/1.txt)" in str(batches.report)
    assert f"{left} of 2 texts kept" in str(batches.report)


def test_no_text_that_is_short_enough_is_an_error() -> None:
    with pytest.raises(AttlasError, match="at least one text of at most 3 tokens in some"):
        LabelledBatches(encoded([9]), BatchingConfig(max_length=3), 1)


def test_labels_are_numbered_in_the_order_of_their_names() -> None:
    labels = Labels.of(["pos", "neg", "pos", "mixed"])
    assert labels.names == ("mixed", "neg", "pos")
    assert labels.ids(corpus(["a", "b"], ["pos", "mixed"])) == [2, 0]


def test_a_label_that_was_never_trained_on_is_an_error_with_its_place() -> None:
    with pytest.raises(AttlasError, match=r"one of the labels neg, pos .* got 'meh' in line 2"):
        Labels(("neg", "pos")).ids(corpus(["a", "b"], ["pos", "meh"]))


def test_vocabulary_and_labels_are_read_back(tmp_path: Path) -> None:
    saved = LabelledVocabularies(Words(["good", "bad"]), Labels(("schön", "übel")))
    saved.save(tmp_path)
    read = LabelledVocabularies.load(tmp_path)
    assert read.labels == saved.labels
    assert read.text.encode("bad good") == saved.text.encode("bad good")
    assert {path.name for path in tmp_path.iterdir()} == {"labels.json", "tokenizer.json"}


@pytest.mark.parametrize("content", [None, "{", '{"a": 1}', "[1, 2]"])
def test_damaged_labels_are_an_error(tmp_path: Path, content: str | None) -> None:
    LabelledVocabularies(Words(["good"]), Labels(("a", "b"))).save(tmp_path)
    path = tmp_path / "labels.json"
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(AttlasError, match="a list of labels at"):
        LabelledVocabularies.load(tmp_path)


def test_a_segmentation_is_drawn_anew_for_each_epoch_and_again_the_same() -> None:
    texts = ["the lovely film of a lovely story", "an awful film of an awful story"] * 5
    vocabulary = train_subwords(texts, "bpe", 300)
    vocabularies = LabelledVocabularies(vocabulary, Labels(("neg", "pos")))
    some = corpus(texts, ["pos", "neg"] * 5)
    first, again, other = (
        json.dumps(sample_labelled(some, vocabularies, 0.3, 1, epoch).source.ids.tolist())
        for epoch in (0, 0, 1)
    )
    assert first == again != other
    best = encode_labelled(some, vocabularies)
    assert best.labels == (1, 0) * 5
    assert best.source[0].tolist() == vocabulary.encode(texts[0])

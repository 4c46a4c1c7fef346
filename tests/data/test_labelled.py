import gzip
from collections import Counter

import pytest

from attlas.data import Labelled, read_labelled
from attlas.errors import AttlasError


def test_each_line_is_a_text_and_its_label(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress('{"text": "schön\\u2028!", "label": "pos"}\n'.encode()))
    assert read_labelled(path) == (Labelled("schön\u2028!", "pos"),)


def test_the_fields_have_the_names_that_are_asked_for_and_labels_become_text(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"review": "a", "stars": 4}\n{"review": "b", "stars": true}\n')
    assert read_labelled(path, "review", "stars") == (("a", "4"), ("b", "True"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "a JSON object in line 2 of"),
        ("", "a JSON object in line 2 of"),
        ("[1]", "got list"),
        ('{"text": "a"}', "a field 'label' in line 2 of .* got the fields \\['text'\\]"),
        ('{"text": 3, "label": "a"}', "text in field 'text' of line 2"),
        ('{"text": "a", "label": null}', "text or a whole number in field 'label' of line 2"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, said):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "a", "label": "b"}}\n{line}\n')
    with pytest.raises(AttlasError, match=said):
        read_labelled(path)


def test_imdb_is_read_whole(shared_data):
    reviews = read_labelled(shared_data / "imdb" / "train.jsonl.gz")
    assert Counter(review.label for review in reviews) == {"pos": 12_500, "neg": 12_500}

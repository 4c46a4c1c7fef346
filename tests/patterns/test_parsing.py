import pytest

from attlas.errors import AttlasError
from attlas.patterns import both, causal, parse, scattered, window


def test_numbers_may_be_whole_or_broken():
    assert parse("scattered(0.05, 3)") == scattered(0.05, 3)
    assert parse("scattered(1e-3)") == scattered(0.001)
    assert parse("both(causal, window(128))") == both(causal, window(128))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "windows(3)",
        "window",
        "window(3",
        "window(x)",
        "window(True)",
        "window('3')",
        "window(1 + 2)",
        "window(radius=3)",
        "window(*[3])",
        "both()",
        "both(3)",
        "causal()",
        "causal & causal",
        "causal; causal",
        "__import__('os').system('true')",
        "(lambda: causal)()",
        "[causal for _ in (1,)][0]",
        "window(" + "9" * 6000 + ")",
        "(" * 3000 + ")" * 3000,
        "\0",
    ],
)
def test_whatever_is_no_pattern_is_refused_and_not_run(text):
    with pytest.raises(AttlasError) as caught:
        parse(text)
    assert caught.value.expected == "a pattern such as both(causal, window(3))"
    if len(text) < 1000:
        assert caught.value.got == repr(text)
    else:  # errors shorten what they quote
        assert caught.value.got.startswith(repr(text)[:20])
        assert len(caught.value.got) < len(text)
    assert caught.value.hint == (
        "build it from: everywhere, causal, window, strided, landmarks, scattered, both, either"
    )


def test_code_in_a_pattern_never_runs(tmp_path):
    witness = tmp_path / "ran"
    with pytest.raises(AttlasError):
        parse(f"window(open({str(witness)!r}, 'w').write('x'))")
    assert not witness.exists()


def test_a_known_pattern_with_a_wrong_number_says_what_is_wrong_with_it():
    with pytest.raises(AttlasError, match="expected a window radius"):
        parse("both(causal, window(-3))")

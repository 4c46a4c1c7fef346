"""What the pages name of attlas is there."""

import re
from pkgutil import resolve_name

import pytest

import attlas
from support.pages import pages

FILES = {"attlas.json"}


def named() -> list[str]:
    """Every dotted name in a code span, but for what the log tells of older versions."""
    texts = [page.read_text(encoding="utf-8") for page in pages() if page.name != "log.md"]
    spans = re.findall(r"(?<!`)`(attlas(?:\.[A-Za-z_]\w*)+)", "\n".join(texts))
    return sorted(set(spans) - FILES)


def resolved(name: str) -> object:
    """As after `import attlas` alone: without the modules that other tests have imported."""
    _, first, *rest = name.split(".")
    found = attlas.__getattr__(first)
    for part in rest:
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", named())
def test_what_a_page_names_is_there(name: str) -> None:
    if name.split(".")[1] in attlas.__all__:
        assert resolved(name) is resolve_name(name)
    else:  # a module that is imported by its name
        resolve_name(name)


@pytest.mark.parametrize("name", attlas.__all__)
def test_every_name_of_the_package_is_there_though_nothing_else_was_imported(name: str) -> None:
    assert resolved(f"attlas.{name}") is resolve_name(f"attlas.{name}")


def test_pages_name_functions_of_the_explorer_and_of_the_metrics() -> None:
    assert "attlas.explorer.serve" in named()
    assert callable(resolved("attlas.explorer.serve"))
    assert callable(resolved("attlas.metrics.alignment_error"))

"""`import attlas`."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import attlas


def test_importing_attlas_imports_nothing_heavy() -> None:
    code = (
        "import sys, attlas; dir(attlas); "
        "sys.exit(', '.join({'torch', 'numpy', 'matplotlib'} & set(sys.modules)) or 0)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", attlas.__all__)
def test_every_name_of_the_package_is_there(name: str) -> None:
    assert getattr(attlas, name) is not None
    assert name in dir(attlas)


def test_the_package_lists_nothing_else() -> None:
    assert [n for n in dir(attlas) if not n.startswith("__")] == sorted(attlas.__all__)


def test_every_folder_of_the_package_is_a_name_of_it_but_the_commands() -> None:
    folders = {file.parent.name for file in Path(attlas.__file__).parent.glob("*/__init__.py")}
    assert folders - {"cli", "jobs"} <= set(attlas.__all__)


def test_a_type_checker_is_reported_of_every_name_and_where_it_comes_from() -> None:
    tree = ast.parse(Path(attlas.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    reported = {name.name: line.module for line in block.body for name in line.names}
    homes = {
        name: f"attlas.{attlas._HOME[name]}" if name in attlas._HOME else "attlas"
        for name in attlas.__all__
    }
    assert reported == homes


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        attlas.nonsense  # noqa: B018


# Packages that reading a run and searching with it have a use for; torch brings its own.
USED = {
    *("annotated_doc", "annotated_types", "attlas", "jaxtyping", "numpy", "pydantic"),
    *("pydantic_core", "safetensors", "sentencepiece", "shellingham", "tomli_w", "torch", "typer"),
    *("typing_extensions", "typing_inspection", "wadler_lindig"),
}
# Parts of torch that take longer to import than a short text to translate.
COSTLY = ("torch._dynamo", "torch._inductor", "torch.distributed.tensor", "torch.distributed.fsdp")
LOADING = """
import json, sys
import torch
before = set(sys.modules)
from attlas.__main__ import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def imported_by(*arguments: str, text: str = "") -> set[str]:
    """The modules that a command imports, beyond those that torch imports."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LOADING, *arguments],
        env=environment, input=text, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.slow
def test_translating_a_line_imports_no_more_than_it_uses(run: Path, tmp_path: Path) -> None:
    links = tmp_path / "links"  # which are read off a trace: somebody listens to the model
    modules = imported_by("translate", str(run), "--alignments", str(links), text="1 2 3\n")
    packages = {name.partition(".")[0] for name in modules}
    private = {name for name in packages if name.startswith("_")}  # of compiled packages
    assert packages - private - set(sys.stdlib_module_names) <= USED
    assert not {name for name in modules if name.startswith(COSTLY)}
    of_attlas = {name.split(".")[1] for name in modules if name.startswith("attlas.")}
    assert not of_attlas & {"analysis", "explorer", "export", "figures", "metrics", "training"}


@pytest.mark.slow
def test_classifying_a_text_does_not_import_the_compiler(labelling: Path) -> None:
    assert not {
        name
        for name in imported_by("classify", str(labelling), text="a lovely film\n")
        if name.startswith(COSTLY)
    }

"""`attlas train --pairs` and `--labels`: a recipe for data whose files alone are named."""

import os
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from os.path import lexists
from pathlib import Path
from shlex import quote
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

from attlas._files import write_durably
from attlas._text import count_noun
from attlas.config import drop_idle_settings, overridden, read_toml, write_toml
from attlas.config.toml import SET, Keys, Overridden
from attlas.data import (
    FilesData,
    LabelledData,
    labelled_corpus_of,
    read_labelled_texts,
    read_lines,
    read_pairs,
)
from attlas.data.base import resolved_name
from attlas.data.corpus import Corpus
from attlas.data.labelled import LabelledCorpus, json_object
from attlas.data.lines import STDIN
from attlas.data.parallel_files import FilePair, are_tables, file_pairs, files_of
from attlas.data.tables import TableFormat, data_suffix, table_rows
from attlas.errors import AttlasError, ConfigError, DataError, quoted
from attlas.metrics.translation import better_tokenizers
from attlas.runs import CONFIG
from attlas.training.initialization import run_and_checkpoint
from attlas.training.recipe import Recipe, read_recipe, shipped_recipes
from attlas.training.sizing import (
    SET_BY_USER,
    Choice,
    DataSize,
    as_tables,
    choice_rows,
    choose,
    warnings_of,
)

_JSON = (".jsonl", ".json", ".ndjson")
_SEPARATORS = (",", ";", "\t")  # of a CSV: German and French spreadsheets write semicolons
_WHY = {"data.train": "the data"}
_SAMPLED = 10_000  # targets, which show whether words have spaces between them
_VALUE_WIDTH = 20  # characters of a terminal


@dataclass(frozen=True, slots=True)
class OwnRecipe:
    """A recipe for own data, the chosen settings, and remarks about the data.

    Args:
        recipe: As it is trained.
        text: The same as a commented TOML file.
        choices: Its settings, with the reason for each.
        remarks: What to expect of so much data.
    """

    recipe: Recipe
    text: str
    choices: tuple[Choice, ...]
    remarks: tuple[str, ...]

    def table(self, width: int | None = None) -> str:
        """Setting, value and reason, in columns.

        Args:
            width: Of the terminal: reasons are wrapped in their column, and stand below a value
                that needs more than its own. None = a row is a line.
        """
        rows = [("setting", "value", "why"), *choice_rows(self.choices)]
        names, values = (max(len(row[column]) for row in rows) for column in (0, 1))
        if width is None:
            lines = [f"{name:<{names}}  {value:<{values}}  {why}" for name, value, why in rows]
            return "\n".join(line.rstrip() for line in lines)
        values = min(values, _VALUE_WIDTH)
        indent = names + values + 4
        lines = []
        for name, value, why in rows:
            reason = wrap(why, max(width - indent, _VALUE_WIDTH)) or [""]
            first = f"{name:<{names}}  {value:<{values}}"
            if len(value) <= values:
                first += f"  {reason.pop(0)}"
            lines += [first, *(" " * indent + line for line in reason)]
        return "\n".join(line.rstrip() for line in lines)


def recipe_for(
    option: str, files: Sequence[str], settings: Sequence[str] = (), init_from: str | None = None
) -> OwnRecipe:
    """A recipe whose settings follow from the size of the data.

    Args:
        option: "--pairs" or "--labels".
        files: For pairs one table, two files, or several tables, perhaps as a pattern; for labelled
            texts one file or a folder.
        settings: Assignments such as "training.max_steps=500". Rules go by them.
        init_from: A run that the training begins with; its vocabulary and model are kept.

    Raises:
        DataError: For files that hold no such data.
        ConfigError: For wrong settings.
    """
    _check_files(option, files)
    values = overridden({}, settings)
    fixed = dict(_assigned_values(values, values.assigned))
    fixed.pop("data.train", None)
    current_folder = Path.cwd()
    reader = _labelled_texts if option == "--labels" else _pairs
    size, of_data = reader(files, values)
    choices = [*of_data, *_choices(size, fixed, of_data)]
    if init_from is not None:
        choices = _with_model_of(choices, resolved_name(current_folder, init_from))
    chosen_settings = {choice.setting for choice in choices}
    choices += [
        Choice(name, fixed[name], SET_BY_USER) for name in fixed if name not in chosen_settings
    ]
    table, _ = drop_idle_settings(Recipe, _with_kinds(choices, values))
    recipe = Recipe.read(table, SET if values.assigned else option)
    recipe = recipe.model_copy(update={"data": recipe.data.resolved(current_folder)})
    shared = _flat(table)
    choices = [choice for choice in choices if choice.setting in shared]
    return OwnRecipe(
        recipe,
        _commented(table, choices, option, files, size),
        tuple(choices),
        tuple(f"WARNING: {warning}" for warning in warnings_of(size)),
    )


def _choices(size: DataSize, fixed: Mapping[str, Any], of_data: Sequence[Choice]) -> list[Choice]:
    """What the rules choose beside these settings.

    Raises:
        ConfigError: For a setting that a rule cannot go by, such as a word for a number.
    """
    try:
        return choose(size, fixed)
    except AttlasError:
        raise
    except (TypeError, ValueError, OverflowError):
        known = {choice.setting: choice for choice in (*of_data, *choose(size))}
        known |= {name: Choice(name, value, SET_BY_USER) for name, value in fixed.items()}
        Recipe.read(as_tables([*known.values()]), SET)
        raise


def default_folder(files: Sequence[str]) -> Path:
    """Where a run for these files is kept: runs/my for my.tsv, my.csv.gz and my.en; runs/part for
    part-1.tsv and part-2.tsv, and for part-*.tsv.
    """
    stems = [
        Path(Path(os.path.abspath(name)).name.removesuffix(".gz")).stem
        for name in (files if are_tables(files) else files[:1])
    ]
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*stems, strict=False))
    common = re.split(r"[*?[]", "".join(letter for letter, *_ in same))[0]
    if common != stems[0]:
        common = common.rstrip("0123456789-_. ")
    return Path("runs") / (common or Path(os.path.abspath(files[0])).parent.name or "pairs")


def recipe_path(own_recipe: OwnRecipe, folder: Path) -> Path:
    """The file beside the folder of a run in which its recipe is written: runs/my.toml for runs/my.

    Raises:
        DataError: Where a file of that name says something else, which must not be lost.
    """
    if folder.name in ("", ".."):
        folder = Path(os.path.abspath(folder))
    path = folder.with_name(f"{folder.name}.toml")
    if lexists(path) and not (path.is_file() and path.read_bytes() == own_recipe.text.encode()):
        raise DataError(
            f"no file at {path}, where the recipe is to be written",
            "another file there",
            f"train that one (attlas train {quote(str(path))}), remove it, or choose another --out",
        )
    return path


def write_recipe(own_recipe: OwnRecipe, path: Path) -> None:
    """Write the recipe, unless it is there already."""
    if not lexists(path):
        write_durably(path, own_recipe.text.encode())


def check_same_data(option: str, files: Sequence[str], folder: Path) -> None:
    """Check that an existing run was begun with these files.

    Raises:
        DataError: If it was begun with other files.
    """
    known_data = read_recipe(folder / CONFIG).data
    before = getattr(known_data, "train", None)
    before = (before,) if isinstance(before, str) else tuple(before or ())
    if _real_paths(file_pairs(before)) != _real_paths(_named(option, files)):
        raise DataError(
            f"the data with which {folder} began",
            f"{option} {' '.join(files)}",
            "choose another folder for a new run: add --out FOLDER",
        )


def _real_paths(pairs: Iterable[FilePair]) -> list[list[str]]:
    return [[os.path.realpath(name) for name in pair] for pair in pairs]


def _named(option: str, files: Sequence[str]) -> tuple[FilePair, ...]:
    """The files, with those that patterns match."""
    if option == "--pairs":
        return files_of(files, Path.cwd())
    return tuple((resolved_name(Path.cwd(), name),) for name in files)


def _check_files(option: str, files: Sequence[str]) -> None:
    max_files = 2 if option == "--pairs" else 1
    if len(files) > max_files and not (option == "--pairs" and are_tables(files)):
        raise DataError(
            "tables whose names end in .tsv or .csv, or two files with a sentence a line, for "
            "--pairs"
            if max_files == 2
            else "one file or folder for --labels",
            f"{len(files)}: {' '.join(files)}",
            "join them to one file"
            if max_files == 1
            else 'for several pairs of files name their patterns: --pairs "*.en" "*.de"',
        )
    for name in files:
        path = Path(name)
        if name == STDIN:
            raise DataError(
                f"a file for {option}, which is read twice",
                "the standard input",
                "write it into a file first",
            )
        if path.suffix == ".toml" or (not path.exists() and name in shipped_recipes()):
            raise ConfigError(
                f"data for {option}, which makes a recipe",
                f"the recipe {name}",
                "leave the recipe out; --set changes what is chosen",
            )
        if option == "--pairs" and path.is_dir():
            raise DataError(
                "a file of sentence pairs for --pairs", f"the folder {name}", "name the file in it"
            )


# What the data is, and how large.


def _pairs(files: Sequence[str], settings: Mapping[str, Any]) -> tuple[DataSize, list[Choice]]:
    named = _named("--pairs", files)
    paths = [name for pair in named for name in pair]
    train: Any = [list(pair) for pair in named]
    if len(named) == 1 or are_tables(paths):
        train = paths[0] if len(paths) == 1 else paths
    choices = [
        Choice("data.kind", "files", "pairs"),
        Choice("data.train", train, _WHY["data.train"]),
    ]
    data_settings = settings.get("data", {})
    if len(named[0]) == 1:
        choices += _table_of_pairs(paths[0], data_settings)
    table = {
        **as_tables(choices)["data"],
        **data_settings,
        "train": train,
        "held_back": 1,
    }
    table.pop("valid", None)
    config = FilesData.read(table, "--pairs")
    corpus = read_pairs(
        config.train,
        config.columns,
        config.filters.empties_alone,
        separator=config.separator,
        quoting=config.quoting,
    )
    _check_some(corpus, paths)
    _check_no_labels(corpus, paths)
    return size_of_pairs(corpus), choices


_FEWEST, _REPEATED = 50, 20  # pairs that are judged; how often a label stands on average


def _check_no_labels(corpus: Corpus, paths: Sequence[str]) -> None:
    """Check that the targets are not a few words which repeat, as labels do."""
    most = len(corpus) // _REPEATED
    targets: set[str] = set()
    for target in corpus.targets:
        targets.add(target)
        if len(targets) > most:
            return
    are_words = all(len(target.split()) == 1 for target in targets)
    if len(paths) == 1 and len(corpus) >= _FEWEST and are_words:
        labels = ", ".join(map(quoted, sorted(targets)[:3]))
        raise DataError(
            f"sentences and their translations in {paths[0]}",
            f"{count_noun(len(targets), 'different word')} in the second column of "
            f"{count_noun(len(corpus), 'line')}: {labels}",
            f"these may be labels: attlas train --labels {quote(paths[0])}",
        )


def _check_some(corpus: Corpus | LabelledCorpus, paths: Sequence[str]) -> None:
    if not len(corpus):
        noun = "sentence pair" if isinstance(corpus, Corpus) else "labelled text"
        raise DataError(
            f"at least one {noun} in {' and '.join(paths)}", str(corpus.report), "check the file"
        )


_BLOCK = 4_096  # pairs


def size_of_pairs(corpus: Corpus) -> DataSize:
    """What the rules read of pairs."""
    of_source, of_target = Counter[str](), Counter[str]()
    total = longest = 0
    is_decomposed = False
    pairs = iter(corpus.pairs)
    while block := list(islice(pairs, _BLOCK)):  # of millions of pairs not all are in memory
        longer = [max(len(pair.source), len(pair.target)) for pair in block]
        total, longest = total + sum(longer), max(longest, *longer)
        for counts, texts in zip((of_source, of_target), zip(*block, strict=True), strict=True):
            counts.update("".join(texts))
            is_decomposed = is_decomposed or _is_decomposed(texts)
    letters = {sign: count for sign, count in of_target.items() if sign.isalpha()}
    source_signs = {sign.lower() for sign in of_source}
    num_shared = sum(count for sign, count in letters.items() if sign.lower() in source_signs)
    better = better_tokenizers(corpus.targets[:_SAMPLED], "13a")
    tokenizer = next((name for name in better if "mecab" not in name), "13a")  # no further package
    return DataSize(
        len(corpus),
        total / len(corpus),
        longest,
        len(of_source | of_target),
        common=num_shared / max(1, sum(letters.values())),
        bleu_tokenizer=tokenizer,
        decomposed=is_decomposed,
    )


def size_of_texts(corpus: LabelledCorpus) -> DataSize:
    """What the rules read of labelled texts."""
    return DataSize(
        len(corpus),
        sum(map(len, corpus.texts)) / len(corpus),
        max(map(len, corpus.texts)),
        len(set().union(*corpus.texts)),
        Counter(corpus.labels),
        decomposed=_is_decomposed(corpus.texts),
    )


def _is_decomposed(texts: Iterable[str]) -> bool:
    return not all(unicodedata.is_normalized("NFC", text) for text in texts)


def _labelled_texts(
    files: Sequence[str], settings: Mapping[str, Any]
) -> tuple[DataSize, list[Choice]]:
    ((path,),) = _named("--labels", files)
    paths = [path]
    choices = [
        Choice("data.kind", "labelled", "texts with labels"),
        Choice("data.train", path, _WHY["data.train"]),
    ]
    data_settings = settings.get("data", {})
    if not Path(path).is_dir():
        choices += _fields_of_texts(path, data_settings)
    table = {**as_tables(choices)["data"], **data_settings, "train": path, "held_back": 1}
    table.pop("valid", None)
    config = LabelledData.read(table, "--labels")
    inner = Path(path) / "train"
    corpus = labelled_corpus_of(
        read_labelled_texts(
            inner if inner.is_dir() else path,
            config.text,
            config.label,
            separator=config.separator,
            quoting=config.quoting,
            unlabelled=config.unlabelled,
        ),
        config.unlabelled,
    )
    _check_some(corpus, paths)
    return size_of_texts(corpus), choices


# Which columns of a table are meant.


def _rows(
    path: str, data_settings: Mapping[str, Any], expected: str
) -> tuple[list[list[str]], TableFormat, list[Choice]]:
    """The rows of a table, and its separator where the name of the file does not say it.

    Raises:
        DataError: For one column.
    """
    lines = read_lines(path)
    separator, quoting = data_settings.get("separator"), data_settings.get("quoting")
    if separator is not None or data_suffix(path) != ".csv":
        candidates = [TableFormat.of(path, separator, quoting)]
    else:
        candidates = [TableFormat.of(path, sign, quoting) for sign in _SEPARATORS]
    ragged: tuple[list[list[str]], TableFormat] | None = None
    for form in candidates:
        try:
            rows = [row for _, row in table_rows(lines, form)]
        except AttlasError:
            if len(candidates) == 1 or (form is candidates[-1] and ragged is None):
                raise
            continue
        widths = set(map(len, rows))
        if min(widths, default=0) > 1 and (len(widths) == 1 or len(candidates) == 1):
            reason = f"its fields are separated by {form.separators}"
            stated = (
                [Choice("data.separator", form.separator, reason)]
                if form is not candidates[0]
                else []
            )
            return rows, form, stated
        if len(rows) and max(widths) > 1 and ragged is None:
            ragged = rows, form
    if ragged is not None:  # the reader of the data names the line
        return *ragged, []
    form = candidates[0]
    if not lines.rows:
        raise DataError(f"{expected} in {path}", "an empty file", "check the file")
    raise DataError(
        f"{expected} in {path}",
        f"one column: {quoted(lines.rows[0])} in line 1",
        f"put {'a comma' if form.separator == ',' else 'a tab'} between the two",
    )


def _table_of_pairs(path: str, data_settings: Mapping[str, Any]) -> list[Choice]:
    rows, _, separator = _rows(path, data_settings, "a sentence and its translation in each line")
    if "columns" in data_settings:
        return separator
    first = rows[0]
    if _is_header(first):
        side_columns = [name for name in first if _names_a_side(name)]
        pair = [name for name in side_columns if name.casefold() in _SIDES] or side_columns
        reason = "line 1 names the columns" + ("" if len(first) == 2 else ": the first two of them")
        return [*separator, Choice("data.columns", pair[:2], reason)]
    texts = [
        column
        for column in range(1, len(first) + 1)
        if not all(_is_number(row, column) for row in rows)
    ]
    if len(texts) < 2:
        raise DataError(
            f"two columns of text in {path}",
            f"numbers in all but {len(texts)} of its {count_noun(len(first), 'column')}",
            "name them: --set 'data.columns=[1, 2]'",
        )
    reason = "line 1 is taken for a pair, not for the names of columns"
    if len(first) > 2:
        reason = f"the first two of {len(first)} columns with text; {reason}"
    return [*separator, Choice("data.columns", texts[:2], reason)]


def _is_number(row: Sequence[str], column: int) -> bool:
    return column <= len(row) and row[column - 1].strip().isdecimal()


_SIDES = {"source", "target", "src", "tgt", "trg"}
_NOUNS = {"text", "sentence", "translation", "original", "reference", "input", "output"}
_ISO = """
af am ar az be bg bn bs ca cs cy da de el en eo es et eu fa fi fr ga gl gu he hi hr hu hy id is it
ja ka kk km kn ko ky la lo lt lv mk ml mn mr ms mt my nb ne nl nn no pa pl ps pt ro ru si sk sl so
sq sr sv sw ta te tg th tl tr uk ur uz vi yo zh zu
deu eng fra spa ita por nld rus jpn cmn zho kor ara tur pol ces swe fin
"""
_NAMED = """
afrikaans arabic basque bengali bulgarian catalan chinese croatian czech danish dutch english
estonian finnish french german greek hebrew hindi hungarian icelandic indonesian irish italian
japanese korean latin latvian lithuanian norwegian persian polish portuguese romanian russian
serbian slovak slovenian spanish swahili swedish turkish ukrainian urdu vietnamese
deutsch englisch französisch spanisch italienisch français anglais allemand espagnol español
inglés francés alemán italiano inglese русский английский 日本語 英語 中文 英文
"""
_CODES, _LANGUAGES = set(_ISO.split()), set(_NAMED.split())
_WORD = re.compile(r"[^\W_]+")


def _names_a_side(name: str) -> bool:
    """Returns True for what names a column of sentences: "en", "English", "source_text"."""
    words = _WORD.findall(name)
    if not 1 <= len(words) <= 3 or name.strip()[-1:] in ".!?":
        return False
    singular_words = {word.casefold().removesuffix("s") for word in words}
    languages = singular_words & {*_LANGUAGES, *(word.removesuffix("s") for word in _LANGUAGES)}
    codes = {
        word for word in words if word.lower() in _CODES and (word.islower() or word.isupper())
    }
    known_names = languages or codes or singular_words & (_SIDES | _NOUNS)
    # "it is late" holds codes as well: beside a code or a language stands a noun, or nothing.
    return bool(known_names) and (len(words) == 1 or bool(singular_words & (_SIDES | _NOUNS)))


def _is_header(row: Sequence[str]) -> bool:
    """Returns True for the names of columns: two of them name a language or a side."""
    return len({*row}) == len(row) and sum(map(_names_a_side, row)) > 1


_TEXT_NAMES = (
    "text", "texts", "sentence", "review", "content", "message", "comment", "body", "tweet",
    "document", "headline", "title", "question", "utterance", "description", "input",
)  # fmt: skip
_LABEL_NAMES = (
    "label", "labels", "class", "category", "sentiment", "target", "topic", "intent", "tag",
    "rating", "emotion", "stars", "answer", "output",
)  # fmt: skip


def _fields_of_texts(path: str, data_settings: Mapping[str, Any]) -> list[Choice]:
    """Which fields hold the text and the label, by default."""
    of_json = data_suffix(path) not in (".csv", ".tsv") and not data_settings.get("separator")
    values: dict[str, set[str]] = {}
    choices: list[Choice] = []
    if of_json or data_suffix(path) in _JSON:
        lines = read_lines(path)
        if not lines.rows:
            raise DataError(f"labelled texts in {path}", "an empty file", "check the file")
        header = list(json_object(lines.rows[0], f"line 1 of {lines.name}"))
    else:
        rows, _, choices = _rows(path, data_settings, "a text and its label in each line")
        header = rows[0]
        values = {
            name: {row[column] for row in rows[1:] if column < len(row)}
            for column, name in enumerate(header)
        }
    names = [name.strip().casefold() for name in header]
    by_name = [
        data_settings.get(key)
        or next((header[names.index(name)] for name in known_names if name in names), None)
        for key, known_names in (("text", _TEXT_NAMES), ("label", _LABEL_NAMES))
    ]
    text, label = by_name
    if len(header) == 2 and bool(text) != bool(label):  # the other of two
        text = text or next(name for name in header if name != label)
        label = label or next(name for name in header if name != text)
    if text is None or label is None or text == label:
        missing = "text" if text is None else "label"
        described = f"the columns {header} in line 1"
        if any(name in values[name] for name in header if name in values):
            described += ", which look like an entry and not like names"
        raise DataError(
            f"names of columns in line 1 of {path}, such as text and label",
            described,
            f"write the names into line 1, or name the column: --set data.{missing}=NAME"
            + (" --set data.label=NAME" if label is None and text is None else ""),
        )
    stated = [("text", text), ("label", label)]
    return [
        *choices,
        *(
            Choice(f"data.{key}", name, f"the field of that name, of {len(header)}")
            for key, name in stated
            if key not in data_settings
        ),
    ]


# From choices to a recipe.


def _assigned_values(
    table: Mapping[str, Any], assigned: Iterable[Keys]
) -> Iterable[tuple[str, Any]]:
    """The values that were put in, by their dotted names."""
    for keys in sorted(assigned):
        value: Any = table
        for key in keys:
            value = value[key]
        if not isinstance(value, dict):
            yield ".".join(keys), value


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        settings |= _flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return settings


def _with_kinds(choices: Sequence[Choice], settings: Overridden) -> Overridden:
    """The tables of these choices. Settings of a kind that the user replaced count as those of the
    old kind, so that they are left out where the new one has none of that name.
    """
    tables = Overridden(as_tables(choices))
    original = as_tables([choice for choice in choices if choice.why != SET_BY_USER])
    for outer, kind in _KINDS.items():
        table: Any = original
        for key in outer:
            table = table.setdefault(key, {}) if isinstance(table, dict) else {}
        if isinstance(table, dict):
            table.setdefault("kind", kind)
    tables.original, tables.assigned = original, set(settings.assigned)
    return tables


_KINDS: dict[Keys, str] = {
    ("model",): "transformer",
    ("training", "optimizer"): "muon",
    ("training", "schedule"): "cosine",
}


def _with_model_of(choices: list[Choice], init_from: str) -> list[Choice]:
    """The choices with model and vocabulary of another run, which its weights belong to."""
    run, _ = run_and_checkpoint(init_from)
    table = read_toml(run / CONFIG)
    shared = _flat({name: table.get(name, {}) for name in ("vocabulary", "model")})
    others = [
        choice
        for choice in choices
        if choice.why == SET_BY_USER or not choice.setting.startswith(("vocabulary.", "model."))
    ]
    settings = {choice.setting for choice in others}
    shared["training.init_from"] = init_from
    return others + [
        Choice(name, value, f"as in the run {Path(init_from).name}")
        for name, value in shared.items()
        if name not in settings
    ]


def _commented(
    table: Mapping[str, Any],
    choices: Iterable[Choice],
    option: str,
    files: Sequence[str],
    size: DataSize,
) -> str:
    file_names = " ".join(quote(name) for name in files)
    head = (
        f"# Made by: attlas train {option} {file_names}\n"
        f"# The settings go by the size of the data: {count_noun(size.examples, size.example)} of "
        f"{size.length:.0f} characters on average.\n"
        "# Change what you like, then: attlas train THIS-FILE --out ANOTHER-FOLDER\n\n"
    )
    if not head.isprintable() and any(not line.isprintable() for line in head.splitlines()):
        head = f"# Made by: attlas train {option}\n\n"
    return head + write_toml(table, {choice.setting: choice.why for choice in choices})


def announce(own_recipe: OwnRecipe, path: Path) -> None:
    """Print what was chosen, on the standard error."""
    width = get_terminal_size().columns if sys.stderr.isatty() else None
    print(f"{own_recipe.table(width)}\n", file=sys.stderr)
    print(f"When the training begins, this recipe is in {path}, with comments.", file=sys.stderr)
    for remark in own_recipe.remarks:
        print(remark, file=sys.stderr)

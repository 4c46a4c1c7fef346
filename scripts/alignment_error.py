"""Score the word alignments of fast_align and Giza++, beside what was published of them.

python scripts/alignment_error.py FOLDER    with enfr.gold, and system-outputs/*.talp, *results.txt

In these files the reference counts words from 1, the outputs count from 0, and `.reverse` names the
target first. Ends with 1 where shares are others than the published ones of as many links; where a
file does not even have as many, others were scored.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from attlas.analysis.alignment import read_links, read_reference, transpose_links
from attlas.data.lines import read_lines
from attlas.errors import AttlasError
from attlas.metrics import AlignmentScore, alignment_error


@dataclass(frozen=True)
class Row:
    """One output, what it scores here, and what was published of it."""

    name: str
    score: AlignmentScore
    published: str

    @property
    def verdict(self) -> str:
        """What of the published figures comes out: all, the shares alone, or not even these."""
        ours, theirs = str(self.score), self.published
        if ours == theirs:
            return "same"
        shares, _, links = ours.rpartition("/")
        others, _, published = theirs.rpartition("/")
        reported = ["other shares"] if shares != others else []
        reported += [f"{published[:-1]} links were scored"] if links != published else []
        return ", ".join(reported)


def rows(folder: Path) -> list[Row]:
    """A row for each published result whose output is there. Errors: `AttlasError`."""
    reference = read_reference(folder / "enfr.gold", first=1)
    sure, possible = [one.sure for one in reference], [one.possible for one in reference]
    found = []
    for results in sorted((folder / "system-outputs").glob("*.enfr-results.txt")):
        system = results.name.split(".")[0]
        for line in read_lines(results).texts:
            name, _, published = line.partition(": ")
            output = results.with_name(f"{system}.{name}")
            if not output.exists():
                continue  # made of subwords: their outputs were not published with them
            links = read_links(output, first=0)
            if ".reverse." in name:
                links = tuple(map(transpose_links, links))
            found.append(Row(f"{system} {name}", alignment_error(links, sure, possible), published))
    if not found:
        raise AttlasError(
            "published results with their outputs", f"none in {folder}", "name the folder above"
        )
    return found


def table(found: list[Row]) -> str:
    """One line each: AER (precision/recall/links) here and as published."""
    wide = max(len(row.name) for row in found)
    head = f"{'output':{wide}}  {'here':26}  {'published':26}  verdict"
    lines = [
        f"{row.name:{wide}}  {row.score!s:26}  {row.published:26}  {row.verdict}" for row in found
    ]
    return "\n".join([head, *lines])


def main(arguments: list[str]) -> int:
    """Print the table of a folder."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        found = rows(Path(arguments[0]))
    except AttlasError as error:
        print(error, file=sys.stderr)
        return 2
    print(table(found))
    return int(any(row.verdict == "other shares" for row in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

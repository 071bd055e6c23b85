"""What a comment cites by number is in a page of this repository."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rooms import OURS, ROOT

READ = (*OURS, "tests", "docs")
HAZARD, RANGE = re.compile(r"\bZ[1-9]\d*\b"), re.compile(r"Z(\d+)–Z(\d+)")
FACT = re.compile(r"\b(?:nvidia\.md|n) (\d+\.\d+b?)")
NOT_OURS = re.compile(
    r"reference/(nvidia|rollouts|ux|aesthetics)\.md|(?<!docs/)\bhazards\.md \d|\b[Mm]ission\b"
    r"|\([HS]\d(?:, [A-Z]\d+)*\)|\"P\d\b"
)


def texts() -> Iterator[tuple[str, str]]:
    for room in READ:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in {".py", ".md"} and path != Path(__file__):
                yield str(path.relative_to(ROOT)), path.read_text()


def hazards() -> set[str]:
    page = (ROOT / "docs" / "hazards.md").read_text()
    between = {f"Z{n}" for first, last in RANGE.findall(page) for n in range(int(first), int(last) + 1)}
    return between | {
        name for row in re.findall(r"^\| (Z[^|]+) \|", page, re.MULTILINE) for name in HAZARD.findall(row)
    }


def facts() -> set[str]:
    return set(re.findall(r"^#+ (\d+\.\d+b?)", (ROOT / "docs" / "design" / "nvidia.md").read_text(), re.MULTILINE))


def cited(number: re.Pattern[str]) -> dict[str, str]:
    return {found: path for path, text in texts() for found in number.findall(text)}


@pytest.mark.parametrize(("number", "there"), [(HAZARD, hazards()), (FACT, facts())], ids=["hazards", "nvidia"])
def test_a_number_that_is_cited_is_on_its_page(number: re.Pattern[str], there: set[str]):
    missing = {found: path for found, path in cited(number).items() if found not in there}

    assert cited(number)
    assert missing == {}


def test_no_comment_points_at_a_page_that_is_not_here():
    assert [path for path, text in texts() if NOT_OURS.search(text)] == []

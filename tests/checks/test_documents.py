"""What the documents name exists: commands of `bin/manage`, files, and headings that links lead to."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from django.core.management import CommandError, get_commands, load_command_class

from tests.rooms import ROOT

# A line of a block, or a command in backquotes that has arguments.
EXAMPLE = re.compile(
    r"(?:^ +(?:.* -- )?(?:bin/manage|python manage\.py) |`bin/manage (?=\w+ ))([a-z_]+)([^`\n]*)", re.MULTILINE
)
COMMAND, LINK = re.compile(r"bin/manage ([a-z_]+)"), re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def documents() -> Iterator[Path]:
    yield from (path for folder in (ROOT, ROOT / "docs", ROOT / "docs/design") for path in sorted(folder.glob("*.md")))
    yield ROOT / "simulator" / "README.md"


def anchors(path: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def dead_links(document: Path) -> list[str]:
    dead = []
    for path, heading in LINK.findall(document.read_text()):
        if path.startswith("http"):
            continue
        target = document.parent / path if path else document
        if not target.exists() or (heading and heading not in anchors(target)):
            dead.append(f"{path}#{heading}")
    return dead


def test_every_command_that_a_document_names_exists():
    named = {(path.name, name) for path in documents() for name in COMMAND.findall(path.read_text())}

    assert ("install.md", "migrate") in named
    assert [each for each in sorted(named) if each[1] not in get_commands()] == []


def test_every_example_of_a_command_has_arguments_that_it_takes():
    """A placeholder such as NAME stands for a number, too. A command alone in a sentence is no example."""
    wrong = {}
    examples = [(path, *found) for path in documents() for found in EXAMPLE.findall(path.read_text())]
    for document, name, words in examples:
        line = re.sub(r"\b[A-Z]+\b", "1", words.partition(" # ")[0].partition(";")[0])
        parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
        try:
            parser.parse_args(shlex.split(line))
        except (CommandError, SystemExit, ValueError) as refusal:
            wrong[f"{document.name}: {name}{words}"] = str(refusal)

    assert len(examples) > 25
    assert wrong == {}


def test_every_link_leads_to_a_file_and_a_heading():
    assert {path.name: dead for path in documents() if (dead := dead_links(path))} == {}


def test_a_dead_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Two words\n[here](#two-words) [gone](gone.md) [no](#three)")

    assert dead_links(page) == ["gone.md#", "#three"]

#!/usr/bin/env python3
"""Fails if a template breaks a rule of this project: spaces at includes, locked buttons, our own terms."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# A file ends with a newline, which a page shows as a space, so no punctuation may follow an include.
BESIDE = r"(?:\{%(?! include )[^%]*%\}|</?(?:a|b|code|em|span|strong)\b[^>]*>)*"  # shows no space itself
INCLUDE = r"\{% include [^%]*%\}"
BEFORE_POINT = re.compile(rf"{INCLUDE}{BESIDE}[,.;:!?)’”]")
AFTER_BRACKET = re.compile(rf"[(‘“]{BESIDE}{INCLUDE}")

LOCKED = re.compile(r"<(\w+)\b((?:[^<>{]|\{[{%][^}]*\}+)*aria-disabled(?:[^<>{]|\{[{%][^}]*\}+)*)>")

CLOCK = re.compile(r"""["']?type["']?\s*[=:]\s*["'](date|time|datetime-local|month|week)["']""")
TAG = re.compile(r"{[%#{].*?[%#}]}")
OWN_TERM = re.compile(
    r"\b(not said|unsaid|does not say|do not say|nobody makes|patience|are cut|is cut|cut into|cut by|cuts)\b", re.I
)
HELP = re.compile(r'help_text=\(?\s*((?:"[^"]*"\s*)+)')


def spaces(text: str) -> Iterator[str]:
    """Yields punctuation beside an include: a page shows a space there."""
    for rule in (BEFORE_POINT, AFTER_BRACKET):
        for found in rule.finditer(text):
            yield f"a space would show in {found.group()}"


def unexplained_locks(text: str) -> Iterator[str]:
    """Yields locked elements that the keyboard does not reach or that give no reason.

    The reason of a `disabled` button stands in the text above it.
    """
    for kind, attributes in LOCKED.findall(text):
        if kind != "button" or not ("aria-describedby" in attributes or " disabled aria-disabled" in attributes):
            yield f"no reason for the lock of <{kind}{attributes}>"


def browsers_own_dates(text: str) -> Iterator[str]:
    """Yields date and time fields of the browser: they follow its locale, with a 12-hour clock (`edges/fields.py`)."""
    for kind in CLOCK.findall(text):
        yield f"a field of the browser's locale: {kind}"


def own_terms(text: str) -> Iterator[str]:
    """Yields terms that the field has another term for."""
    for term in OWN_TERM.findall(TAG.sub("", text)):
        yield f"not a term of the field: {term}"


def own_terms_of_help(text: str) -> Iterator[str]:
    """Yields the same problems in the help texts of the API."""
    yield from own_terms(" ".join(HELP.findall(text)))


RULES: dict[str, tuple[Callable[[str], Iterator[str]], ...]] = {
    "templates/**/*.html": (spaces, unexplained_locks, browsers_own_dates),
    "*/web/*.py": (browsers_own_dates,),
    "templates/fleet/**/*.html": (own_terms,),
    "fleet/api/*.py": (own_terms_of_help,),
}


def main() -> int:
    """Prints what breaks a rule, with its file; returns the exit status."""
    found = []
    for pattern, rules in RULES.items():
        paths = sorted(ROOT.glob(pattern))
        if not paths:
            found.append(f"{pattern}: no file")
        for path in paths:
            text = path.read_text(encoding="utf-8")
            found += [f"{path.relative_to(ROOT)}: {line}" for rule in rules for line in rule(text)]
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

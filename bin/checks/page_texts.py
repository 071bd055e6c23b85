#!/usr/bin/env python3
"""Fail on a sentence of a template that is too long, and on a phrase that must not come back."""

import re
import sys
from html import unescape
from pathlib import Path

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
MOST_WORDS = 20
COMMENT = re.compile(r"\{#.*?#\}|\{% comment %\}.*?\{% endcomment %\}|<!--.*?-->", re.DOTALL)
UNREAD = re.compile(r"<(script|style|svg|pre|code|textarea)\b.*?</\1>", re.DOTALL)
INLINE = re.compile(r"</?(?:a|b|bdi|code|em|kbd|span|strong|time)\b(?:[^<>{]|\{[{%].*?[%}]\})*>")
TAG = re.compile(r"</?[a-z!](?:[^<>{]|\{[{%].*?[%}]\})*>", re.IGNORECASE | re.DOTALL)
VALUE = re.compile(r"\{\{.*?\}\}|\{% (?:plural|either|firstof|clock) .*?%\}")
BRANCH = re.compile(r"\{%.*?%\}")
SPOKEN = re.compile(r'(?:title|aria-label|placeholder|why_not|hint|label|empty|then)="([^"{}]{6,})"')
END = re.compile(r"(?<=[.!?])\s|\|")
BANNED = re.compile(
    r"\b(?:of which|of whom|by whom|by which|at which|whose .* is|let go|told anew|asked anew|on trial|passed over"
    r"|break the glass|nobody has|nobody knows|nobody hears|there is none that|none that|what it was before"
    r"|under way|look again|stands still|is over|Leave it)\b",
    re.IGNORECASE,
)


def main() -> int:
    """Prints every problem, and returns the exit status."""
    problems = [
        f"{path.relative_to(TEMPLATES.parent)}: {problem}"
        for path in sorted(TEMPLATES.rglob("*.html"))
        for problem in problems_in(path.read_text())
    ]
    sys.stdout.writelines(f"{problem}\n" for problem in problems)
    return 1 if problems else 0


def problems_in(text: str) -> list[str]:
    """Returns the long sentences and the banned phrases of one template."""
    read = sentences_of(text)
    long = [f"{len(words)} words: {' '.join(words)}" for one in read if len(words := one.split()) > MOST_WORDS]
    return long + [f"“{found[0]}”: {one}" for one in read if (found := BANNED.search(one))]


def sentences_of(text: str) -> list[str]:
    """Returns the texts a person reads; a value counts as one word, and a branch ends a sentence."""
    text = UNREAD.sub(" ", COMMENT.sub(" ", text))
    spoken = "|".join(SPOKEN.findall(text))
    text = BRANCH.sub("|", VALUE.sub(" X ", text))
    text = TAG.sub("|", INLINE.sub(" ", text))
    return [" ".join(one.split()) for one in END.split(unescape(f"{text}|{spoken}")) if one.strip()]


if __name__ == "__main__":
    sys.exit(main())

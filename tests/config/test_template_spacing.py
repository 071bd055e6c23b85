"""A file ends with a newline, which a page shows as a space: no comma, point or bracket stands beside an include."""

import re
from pathlib import Path

import pytest
from django.conf import settings

TEMPLATES = Path(settings.BASE_DIR) / "templates"
BESIDE = r"(?:\{%(?! include )[^%]*%\}|</?(?:a|b|code|em|span|strong)\b[^>]*>)*"  # what itself shows no space
INCLUDE = r"\{% include [^%]*%\}"
BEFORE_POINT = re.compile(rf"{INCLUDE}{BESIDE}[,.;:!?)’”]")
AFTER_BRACKET = re.compile(rf"[(‘“]{BESIDE}{INCLUDE}")


def beside_an_include(text: str) -> list[str]:
    return [found.group() for rule in (BEFORE_POINT, AFTER_BRACKET) for found in rule.finditer(text)]


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.name)
def test_no_space_is_shown_before_a_comma(path):
    assert beside_an_include(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "planted",
    [
        '{% include "a.html" %}, b',
        '{% include "a.html" with b=c %}.',
        '{% if a %}{% include "a.html" %}{% endif %}</a>: b',
        '({% include "a.html" %} b',
    ],
)
def test_one_that_is_planted_is_found(planted):
    assert len(beside_an_include(planted)) == 1


@pytest.mark.parametrize("right", ['{% include "a.html" %} · b', '{% include "a.html" %}{{ b }}, c'])
def test_what_shows_right_is_not(right):
    assert beside_an_include(right) == []

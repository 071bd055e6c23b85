"""The field's words, in templates and in what the API says of its fields: no images of our own for them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TAG = re.compile(r"{[%#{].*?[%#}]}")
OURS = re.compile(
    r"\b(not said|unsaid|does not say|do not say|nobody makes|patience|are cut|is cut|cut into|cut by|cuts)\b", re.I
)
HELP = re.compile(r'help_text=\(?\s*((?:"[^"]*"\s*)+)')


@pytest.mark.parametrize("path", sorted((ROOT / "templates" / "fleet").glob("*.html")), ids=lambda path: path.name)
def test_a_template_says_it_as_the_field_does(path):
    assert OURS.findall(TAG.sub("", path.read_text())) == []


@pytest.mark.parametrize("path", sorted((ROOT / "fleet" / "api").glob("*.py")), ids=lambda path: path.name)
def test_the_api_says_it_as_the_field_does(path):
    assert OURS.findall(" ".join(HELP.findall(path.read_text()))) == []

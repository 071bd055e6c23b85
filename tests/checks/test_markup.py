"""The check of templates finds what each of its rules forbids."""

import importlib.util

import pytest

from tests.rooms import ROOT


@pytest.fixture(scope="module")
def markup():
    spec = importlib.util.spec_from_file_location("markup", ROOT / "bin" / "checks" / "markup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "planted",
    [
        '{% include "a.html" %}, b',
        '{% include "a.html" with b=c %}.',
        '{% if a %}{% include "a.html" %}{% endif %}</a>: b',
        '({% include "a.html" %} b',
    ],
)
def test_finds_a_space_before_a_comma(markup, planted):
    assert len(list(markup.spaces(planted))) == 1


@pytest.mark.parametrize("right", ['{% include "a.html" %} · b', '{% include "a.html" %}{{ b }}, c'])
def test_allows_what_shows_no_space(markup, right):
    assert list(markup.spaces(right)) == []


@pytest.mark.parametrize(
    ("element", "number"),
    [
        ('<button aria-disabled="true">', 1),
        ('<a aria-disabled="true" aria-describedby="why">', 1),
        ('<button {% if a %}aria-disabled="true"{% endif %} aria-describedby="why">', 0),
        ('<button disabled aria-disabled="true">', 0),
    ],
)
def test_finds_a_locked_button_without_a_reason(markup, element, number):
    assert len(list(markup.unexplained_locks(element))) == number


@pytest.mark.parametrize(
    ("field", "number"),
    [('<input type="date" name="first">', 1), ('forms.TimeInput({"type": "time"})', 1), ('<input type="search">', 0)],
)
def test_finds_a_field_that_follows_the_locale_of_the_browser(markup, field, number):
    assert len(list(markup.browsers_own_dates(field))) == number


def test_finds_terms_of_our_own(markup):
    assert list(markup.own_terms("<p>The GPU is cut into 7{% comment %}patience{% endcomment %}</p>"))
    assert list(markup.own_terms_of_help('help_text="How GPUs are cut."'))
    assert list(markup.own_terms_of_help("# patience")) == []

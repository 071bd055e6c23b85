"""The check of page texts: what it finds in a template, and what it lets be."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LONG = "The node is held again and put back into the queue of the operator so that a later wave can release it there."


def problems_in(text: str) -> list[str]:
    spec = importlib.util.spec_from_file_location("page_texts", ROOT / "bin" / "checks" / "page_texts.py")
    assert spec is not None
    assert spec.loader is not None
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    return check.problems_in(text)


@pytest.mark.parametrize(
    "text", [f"<p>{LONG}</p>", f'<button title="{LONG}">Retry</button>', LONG.replace("node", "<b>node</b>")]
)
def test_finds_a_sentence_that_is_too_long(text: str):
    (problem,) = problems_in(text)

    assert problem.startswith("23 words: ")


@pytest.mark.parametrize(
    "text",
    [
        "<p>Nothing is let go.</p>",
        "<p>Nodes, by\n which one fails.</p>",
        '{% include "x.html" with title="Under way" %}',
    ],
)
def test_finds_a_phrase_that_must_not_come_back(text: str):
    assert len(problems_in(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"{{# {LONG} #}}",
        f"<code>{LONG}</code>",
        "<p>{% if a %}one two three four five six seven eight nine ten {% else %}" + "eleven " * 12 + "{% endif %}</p>",
        "<li>one two three four five six seven eight</li><li>nine ten eleven twelve thirteen fourteen fifteen</li>",
    ],
)
def test_lets_be_what_nobody_reads_as_one_sentence(text: str):
    assert problems_in(text) == []

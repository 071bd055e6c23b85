"""Of a kind one place says what it is called, one which rows are its, one how they are made; nobody else names any."""

import ast
import re

import pytest

from fleet.models.kinds import MIRRORED
from fleet.observer.mirror.kinds import CONFIGS, KINDS
from tests.rooms import PRODUCT, ROOT

UNMISTAKABLE = set(MIRRORED) - {"nodes", "pods", "events", "namespaces"}  # these are words for other things, too
# Rules are pure and import no table: they spell the kinds they read, and their tests hold these against it.
SPELT = {"kube/resources.py", "health/rules/base.py"}


def test_every_kind_that_is_watched_has_rows_and_every_row_is_of_one_that_is_watched():
    assert set(KINDS) == set(MIRRORED)


@pytest.mark.parametrize("kind", MIRRORED)
def test_every_kind_is_called_in_words_of_its_own(kind: str):
    others = [MIRRORED[other].resource.title for other in MIRRORED if other != kind]

    title = MIRRORED[kind].resource.title

    assert title[0].isupper()
    assert title not in others


def test_no_row_is_of_two_kinds():
    whose = [(kind.model, kind.shares) for kind in MIRRORED.values()]
    shared = {model for model, shares in whose if shares}

    assert len(set(whose)) == len(whose)
    assert not [model for model, shares in whose if not shares and model in shared]


def test_what_a_config_map_is_for_is_the_same_where_it_is_read_and_where_it_is_kept():
    assert {MIRRORED[resource.name].shares: purpose for purpose, resource in CONFIGS.items()} == {
        (("purpose", purpose),): purpose for purpose in CONFIGS
    }


def test_no_other_module_spells_a_kind():
    texts = {
        str(path.relative_to(ROOT)): path.read_text()
        for room in PRODUCT
        for path in (ROOT / room).rglob("*.py")
        if "migrations" not in path.parts
    }
    spelt = {
        (name, node.value)
        for name, text in texts.items()
        if name not in SPELT and any(kind in text for kind in UNMISTAKABLE)  # most files need no parsing
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and node.value in UNMISTAKABLE
    }

    assert spelt == set()


def test_every_kind_that_a_page_waits_for_is_one_that_is_watched():
    waited = {
        kind
        for page in (ROOT / "templates").rglob("*.html")
        for kinds in re.findall(r'data-kinds="([^"]*)"', page.read_text())
        for kind in re.findall(r"[\w.:-]+", kinds)
        if "." in kind or ":" in kind
    }

    assert waited
    assert waited <= set(MIRRORED)

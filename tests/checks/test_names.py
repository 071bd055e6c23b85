"""One name, one thing: who reads a class's name must not ask which of two is meant."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from tests.rooms import PRODUCT, ROOT

DJANGOS = {"Command", "Migration"}  # it finds these by their names

ALIASES = """
class Node: ...
Key = tuple[str, str]
Told: type = Mapping[str, int]
Line = NamedTuple("Line", [("at", int)])
Facts = TypeVar("Facts")
LONGEST = 8
T = TypeVar("T")
log = logger()
"""


def names_in(source: str) -> Iterator[str]:
    """Of the classes of a module and the aliases of types: what is capitalised, and no constant."""
    for node in ast.parse(source).body:
        match node:
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name[0].isupper() and not name.isupper():
                    yield name


def test_an_alias_is_a_name_as_a_class_is():
    assert list(names_in(ALIASES)) == ["Node", "Key", "Told", "Line", "Facts"]


def test_no_two_classes_or_aliases_have_the_same_name():
    where = defaultdict(list)
    for room in PRODUCT:
        for path in sorted((ROOT / room).rglob("*.py")):
            for name in set(names_in(path.read_text())) - DJANGOS:
                where[name].append(str(path.relative_to(ROOT)))

    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}

"""One name, one thing: who reads a class's name must not ask which of two is meant."""

import ast
from collections import defaultdict

from tests.rooms import PRODUCT, ROOT

DJANGOS = {"Command", "Migration"}  # it finds these by their names


def test_no_two_classes_have_the_same_name():
    where = defaultdict(list)
    for room in PRODUCT:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and node.name not in DJANGOS:
                    where[node.name].append(str(path.relative_to(ROOT)))

    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}

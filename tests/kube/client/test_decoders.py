"""A decoder that a reflector builds ends the process: msgspec reads annotations while others use what it has."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import inspect

from kube import resources
from kube.client.decoder import STRUCTS
from kube.resources import Resource
from kube.structs import CustomSeen
from tests.rooms import OURS

ROOT = Path(__file__).parents[3]
ASIDE = "tests.kube.client.reading_at_once"
BUILDERS = {"Decoder", "Encoder", "defstruct", "convert", "decoder"}
# `decoder` is called where modules are imported, and by nothing else: that is what this test looks after.
BUILDERS_OF_OURS = {"kube/client/decoder.py": {"decoder", "_list_of"}}


def example_of(kind: inspect.Type) -> Any:
    """Something of each member, as deep as it goes: a decoder is only followed where there is something to decode."""
    match kind:
        case inspect.UnionType():
            return example_of(next(one for one in kind.types if not isinstance(one, inspect.NoneType)))
        case inspect.StructType():
            return {field.encode_name: example_of(field.type) for field in kind.fields}
        case inspect.ListType() | inspect.VarTupleType():
            return [example_of(kind.item_type)]
        case inspect.DictType():
            return {"a": example_of(kind.value_type)}
        case inspect.DateTimeType():
            return "2026-11-22T00:00:00Z"
        case inspect.StrType():
            return "a"
        case inspect.BoolType():
            return True
        case inspect.IntType() | inspect.FloatType():
            return 1
        case inspect.AnyType() | inspect.RawType():
            return {}
    raise AssertionError(f"no example of {kind}")


def ends_of_processes_that_read_at_once(*words: str) -> dict[str, int]:
    lists = {
        kind.__name__: {"metadata": {"resourceVersion": "1"}, "items": [example_of(inspect.type_info(kind))] * 3}
        for kind in STRUCTS
    }
    ran = subprocess.run(
        [sys.executable, "-m", ASIDE, *words],
        cwd=ROOT,
        input=json.dumps(lists),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.nightly
@pytest.mark.parametrize("words", [[], ["--watched"]], ids=["as it is", "watched"])
def test_no_process_dies_of_its_first_lists(words):
    """Built lazily, 41 of 200 died of SIGSEGV (-11)."""
    assert ends_of_processes_that_read_at_once(*words) == {"0": 60}


def test_each_resource_has_its_decoders():
    there = {one.struct for one in vars(resources).values() if isinstance(one, Resource)}

    assert there | {CustomSeen} == set(STRUCTS), "and that of kinds that are found by discovery"


def test_nobody_builds_one_inside_a_function():
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for room in OURS
        for path in (ROOT / room).rglob("*.py")
        for line in lines_that_build(path)
    ]

    assert found == []


def lines_that_build(path: Path) -> list[int]:
    text = path.read_text()
    if not any(word in text for word in (*BUILDERS, "decode(")):  # most files need no parsing
        return []
    allowed = BUILDERS_OF_OURS.get(str(path.relative_to(ROOT)), set())
    functions = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in allowed
    ]
    calls = (node for function in functions for node in ast.walk(function) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if builds(call)]


def builds(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in BUILDERS or (name == "decode" and any(word.arg == "type" for word in call.keywords))


@pytest.mark.parametrize(
    "line",
    ["msgspec.json.Decoder(Pod)", "msgspec.json.decode(body, type=Pod)", "decoder(Pod)", "msgspec.convert(a, Pod)"],
)
def test_each_way_to_build_one_is_known(line, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "lazy.py").write_text(f"def read(body):\n    return {line}\n\nBEFORE = {line}\n")

    assert lines_that_build(tmp_path / "lazy.py") == [2]

"""Parses YAML or JSON text into plain values; duplicate keys are an error. Pure."""

import json
import re
from collections.abc import Iterable
from typing import Any

import yaml

from edges.documents import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    LARGEST_BYTES,
    NULL,
    STRING,
    BadDocument,
    FileProblem,
    compose,
    line_of,
    text_of,
)
from rollouts.gates.options import is_text

WHOLE = re.compile(r"-?(0|[1-9]\d{0,8})", re.ASCII)
BROKEN = re.compile(r"-?(0|[1-9]\d{0,8})\.\d{1,18}", re.ASCII)
TRUTH = {"true": True, "false": False}
NO_WORD = "A key contains a character that cannot be stored: a NUL, or half of a surrogate pair."


def values(content: str | bytes) -> Any:
    """Parses the text.

    :raises BadDocument: when it is too large, too deep, neither YAML nor JSON, or repeats a key
    """
    text = text_of(content) if isinstance(content, bytes) else content
    return _parse_json(text) if text.lstrip()[:1] == "{" and len(text) <= LARGEST_BYTES else _parse_yaml(text)


def _parse_json(text: str) -> Any:
    """Parses JSON; text that only begins like JSON may be YAML."""
    try:
        return json.loads(text, object_pairs_hook=_refuse_repeated_keys, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return _parse_yaml(text)


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if not all(is_text(key) for key, _ in pairs):
        raise BadDocument([FileProblem(1, NO_WORD)])
    if twice := _repeated_name(key for key, _ in pairs):
        raise BadDocument([FileProblem(1, f"The key “{twice[:40]}” is there twice.")])
    return dict(pairs)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _parse_yaml(text: str) -> Any:
    return _value_of_node(compose(text, begins="cluster"))


def _value_of_node(node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        names = [_name(key) for key, _ in node.value]
        if twice := _repeated_name(names):
            again = [key for key, _ in node.value][len(names) - 1 - names[::-1].index(twice)]
            raise BadDocument([FileProblem(line_of(again), f"The key “{twice[:40]}” is there twice.")])
        return {name: _value_of_node(value) for name, (_, value) in zip(names, node.value, strict=True)}
    if isinstance(node, yaml.SequenceNode):
        return [_value_of_node(each) for each in node.value]
    return _value_of_scalar(node)


def _name(key: yaml.Node) -> str:
    if isinstance(key, yaml.ScalarNode) and key.tag == STRING:
        if not is_text(str(key.value)):
            raise BadDocument([FileProblem(line_of(key), NO_WORD)])
        return str(key.value)
    raise BadDocument([FileProblem(line_of(key), "A key is a word.")])


def _value_of_scalar(node: yaml.Node) -> Any:
    written = str(node.value)
    if node.tag == STRING:
        return written
    if node.tag == NULL:
        return None
    if node.tag == BOOLEAN and written in TRUTH:
        return TRUTH[written]
    if node.tag == INTEGER and WHOLE.fullmatch(written):
        return int(written)
    if node.tag == FLOAT and BROKEN.fullmatch(written):
        return float(written)
    said = f"“{written[:40]}” can be read in several ways. If it is text, write it in quotes."
    raise BadDocument([FileProblem(line_of(node), said)])


def _repeated_name(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""

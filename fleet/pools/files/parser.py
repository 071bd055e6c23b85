"""A strict parser of pool files: unknown and repeated keys are refused with their line. Pure except for the rules of
the pool's columns."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

import yaml
from django.core.exceptions import ValidationError

from edges.documents import FLOAT, INTEGER, NULL, STRING, BadDocument, compose
from edges.documents import line_of as _line
from fleet.models import Pool
from fleet.models.pool import CLASS_PLACEMENTS, MOST_WORSE_PERCENT
from fleet.pools.changes import WRITTEN
from fleet.pools.files.problems import BadPoolFile, FileProblem

MOST_POOLS = 200
NEEDED = ("name", "selector")
DEFAULTS: Mapping[str, Any] = {name: getattr(Pool(), name) for name in WRITTEN if name not in NEEDED}
KEYS = (*NEEDED, *DEFAULTS)


@dataclass(frozen=True)
class FileEntry:
    line: int
    fields: Mapping[str, Any]  # all KEYS

    @property
    def name(self) -> str:
        return str(self.fields["name"])


@dataclass
class PoolFile:
    cluster: str = ""  # cluster name; blank: not given
    entries: list[FileEntry] = field(default_factory=list)


def parse_pool_file(text: str) -> PoolFile:
    """Parses a file.

    :raises BadPoolFile: with all problems
    """
    try:
        root = compose(text, begins="pools")
    except BadDocument as refusal:
        raise BadPoolFile(refusal.lines) from refusal
    found = PoolFile()
    problems: list[FileProblem] = []
    for key, node in _key_value_pairs(root, ("cluster", "pools"), problems):
        if key == "cluster":
            found.cluster = _parse_word(node, key, problems)
        elif isinstance(node, yaml.SequenceNode):
            found.entries = _entries(node, problems)
        else:
            problems.append(FileProblem(_line(node), "“pools” must be a list. Each pool begins with “- name:”."))
    if not problems and not any(key.value == "pools" for key, _ in getattr(root, "value", ())):
        problems.append(FileProblem(1, "“pools:” is missing."))
    problems += _repeated_pools(found.entries)
    if problems:
        raise BadPoolFile(problems)
    return found


def _entries(node: yaml.SequenceNode, problems: list[FileProblem]) -> list[FileEntry]:
    if len(node.value) > MOST_POOLS:
        problems.append(
            FileProblem(_line(node), f"A file has at most {MOST_POOLS} pools; this one has {len(node.value)}.")
        )
        return []
    return [entry for each in node.value if (entry := _entry(each, problems))]


def _entry(node: yaml.Node, problems: list[FileProblem]) -> FileEntry | None:
    before = len(problems)
    fields: dict[str, Any] = dict(DEFAULTS)
    for key, value in _key_value_pairs(node, KEYS, problems):
        fields[key] = READERS[key](value, key, problems)
    if len(problems) == before:
        missing = [key for key in NEEDED if not fields.get(key)]
        problems += [FileProblem(_line(node), f"The pool has no {key}.") for key in missing]
    if len(problems) == before:
        problems += _broken_rules(node, fields)
    return FileEntry(_line(node), fields) if len(problems) == before else None


def _broken_rules(node: yaml.Node, fields: Mapping[str, Any]) -> Iterator[FileProblem]:
    """Yields violations of the columns' rules, such as an invalid selector."""
    lines = {key.value: _line(value) for key, value in node.value}
    try:
        Pool(**fields).clean_fields(exclude=["cluster"])
    except ValidationError as refusal:
        for name, sentences in refusal.message_dict.items():
            yield FileProblem(lines.get(name, _line(node)), f"{name}: {' '.join(sentences)}")


def _key_value_pairs(
    node: yaml.Node, known: tuple[str, ...], problems: list[FileProblem]
) -> Iterator[tuple[str, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        problems.append(FileProblem(_line(node), f"Must be “key: value”, with the keys {', '.join(known)}."))
        return
    seen: set[str] = set()
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else ""
        if name not in known:
            problems.append(FileProblem(_line(key), f"Unknown field “{name[:40]}”. Known fields: {', '.join(known)}."))
        elif name in seen:
            problems.append(FileProblem(_line(key), f"The key “{name}” is there twice."))
        else:
            seen.add(name)
            yield name, value


def _parse_word(node: yaml.Node, key: str, problems: list[FileProblem]) -> str:
    if isinstance(node, yaml.ScalarNode) and node.tag == STRING:
        return str(node.value).strip()
    if isinstance(node, yaml.ScalarNode) and node.tag == NULL:
        return ""
    hint = f": write “{node.value}” in quotes" if isinstance(node, yaml.ScalarNode) else ""
    problems.append(FileProblem(_line(node), f"{key} must be text{hint}."))
    return ""


def _parse_whole_number(node: yaml.Node, key: str, problems: list[FileProblem], most: int = 999_999) -> int:
    is_whole = isinstance(node, yaml.ScalarNode) and node.tag == INTEGER
    # The tag already restricts to ASCII digits in YAML's grammar.
    if is_whole and node.value.isdecimal() and len(node.value) < 7 and 1 <= (number := int(node.value)) <= most:
        return number
    problems.append(FileProblem(_line(node), f"{key} must be a whole number from 1 to {most}."))
    return 1


def _price(node: yaml.Node, key: str, problems: list[FileProblem]) -> Decimal | None:
    if isinstance(node, yaml.ScalarNode) and node.tag == NULL:
        return None
    try:
        # `Decimal` accepts digits of other scripts, too.
        if isinstance(node, yaml.ScalarNode) and node.tag in {INTEGER, FLOAT, STRING} and node.value.isascii():
            price = Decimal(node.value)
            if price.is_finite() and price >= 0:
                return price
    except InvalidOperation:
        pass  # reported below, like any invalid price
    problems.append(FileProblem(_line(node), f"{key} must be a number of 0 or more, or null."))
    return None


def _repeated_pools(entries: list[FileEntry]) -> list[FileProblem]:
    first: dict[str, int] = {}
    found = []
    for entry in entries:
        if entry.name in first:
            found.append(FileProblem(entry.line, f"Pool {entry.name} is already on line {first[entry.name]}."))
        first.setdefault(entry.name, entry.line)
    return found


READERS: Mapping[str, Callable[[yaml.Node, str, list[FileProblem]], Any]] = {
    "name": _parse_word,
    "selector": _parse_word,
    "environment": _parse_word,
    "workload_class": _parse_word,
    "approval": _parse_word,
    "max_unavailable": _parse_whole_number,
    "price_per_gpu_hour": _price,
    "placement_policy": _parse_word,
    **dict.fromkeys(CLASS_PLACEMENTS.values(), _parse_word),
    "spread_label": _parse_word,
    "test_images": _parse_word,
    "test_claim_template": _parse_word,
    "test_worse_percent": partial(_parse_whole_number, most=MOST_WORSE_PERCENT),
}

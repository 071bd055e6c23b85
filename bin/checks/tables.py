#!/usr/bin/env python3
"""Fail when a table of the documents, or a type of the command line, differs from the code that it is generated from;
`bin/tables` writes them anew."""

import inspect
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from configparser import ConfigParser
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")

import django  # noqa: E402

django.setup()

from drf_spectacular.generators import SchemaGenerator  # noqa: E402

from benchmarks import results  # noqa: E402
from bin.checks.rest_types import rest_types  # noqa: E402
from health.inbox.rulebook import FOR_DEVELOPERS, every_rule  # noqa: E402
from health.telemetry.service_levels.indicators import INDICATORS  # noqa: E402
from rollouts.external_rollouts.gate_options import ASKED, LEFT_OUT  # noqa: E402
from rollouts.gates import GATES  # noqa: E402
from rollouts.gates.base import Gate, When  # noqa: E402
from rollouts.gates.options import kinds_of, wire_name, write_options  # noqa: E402
from rollouts.verbs import VERBS  # noqa: E402
from wording.durations import spell  # noqa: E402

HAZARDS = re.compile(r" \(hazards? Z\d+(?:, Z\d+)*\)|" + FOR_DEVELOPERS.pattern)
OF_EVERY_GATE = set(Gate.__annotations__)
ASKED_WHEN = {
    When.ENTRY: "once, before the first node",
    When.WAVE: "before each wave",
    When.THROUGH: "from the first release to the end of the soak",
}


def rules() -> str:
    """One row for each rule that opens findings."""
    return table(
        ("rule", "title", "a finding says", "about", "opens after", "listed under"),
        (
            (
                *(f"`{rule.key}`", rule.title, rule.says, rule.of),
                spell(rule.after) if rule.after else "at once",
                ", ".join(sorted(rule.explained_by)),
            )
            for rule in sorted(every_rule(), key=lambda rule: rule.key)
        ),
    )


def gates() -> str:
    """One row for each gate, with the default of each option."""
    rows = []
    for gate in GATES.values():
        written = write_options(gate())
        names = [wire_name(name, kind) for name, kind in kinds_of(gate).items() if name not in OF_EVERY_GATE]
        options = ", ".join(f"`{name}` {default(name, written.get(name))}" for name in names)
        rows.append((f"`{gate.key}`", gate.title, first_paragraph(gate), ASKED_WHEN[gate.when], options or "–"))
    return table(("gate", "title", "passes when", "evaluated", "options and defaults"), rows)


def indicators() -> str:
    """One row for each ready-made expression of a service level."""
    rows = (
        (f"`{each.key}`", each.title, each.unit or "ratio", "higher" if each.is_higher_better else "lower", each.source)
        for each in INDICATORS.values()
    )
    return table(("indicator", "measure", "unit", "better", "metrics by"), rows)


def gates_of_external_rollouts() -> str:
    """Which gates evaluate a rollout that others drive, and why the others do not."""
    used = [(f"`{gate.key}`", "yes", "") for gate in ASKED]
    return table(("gate", "used", "reason"), [*used, *((f"`{key}`", "no", why) for key, why in LEFT_OUT.items())])


def verbs() -> str:
    """One row for each command that a plan takes."""
    return table(
        ("command", "REST: POST below `/api/v1/plans/ID`", "permission", "in the states", "effect"),
        (
            (
                *(verb.label, f"`{verb.resource}`", str(verb.permission)),
                ", ".join(sorted(state.value for state in verb.states)),
                verb.consequence,
            )
            for verb in VERBS.values()
        ),
    )


@cache
def schema() -> dict[str, Any]:
    return SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-any-return]


def resources() -> str:
    """One row for each resource of the REST API, with its paths and methods."""
    paths = schema()["paths"]
    by_tag: dict[str, list[str]] = defaultdict(list)
    for path, methods in sorted(paths.items()):
        short = path.removeprefix("/api/v1/")
        by_tag[short.split("/")[0]].append(f"`{short}` {', '.join(method.upper() for method in methods)}")
    return table(("resource", "paths below `/api/v1/`"), ((tag, "<br>".join(rows)) for tag, rows in by_tag.items()))


def layers() -> str:
    """The layers of the product and of each app, the highest first, as `.importlinter` has them."""
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter")
    apps = names_of(contracts["importlinter:contract:apps"]["layers"])
    inside = {
        section["containers"].strip(): names_of(section["layers"])
        for section in contracts.values()
        if section.get("type") == "layers" and "containers" in section
    }
    rows = []
    for line in apps:
        for app in line:
            within = " → ".join(", ".join(f"`{name}`" for name in level) for level in inside.get(app, []))
            rows.append((f"`{app}`", about_package(app), within or "–"))
    return table(("package", "contains", "its own layers: each imports only those to its right"), rows)


def figures() -> str:
    """The latest record of each figure."""
    return results.table(results.recorded())


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "rules": ("docs/findings.md", rules),
    "gates": ("docs/gates.md", gates),
    "indicators": ("docs/gates.md", indicators),
    "external": ("docs/gates.md", gates_of_external_rollouts),
    "verbs": ("docs/promotions.md", verbs),
    "resources": ("docs/api.md", resources),
    "layers": ("docs/architecture.md", layers),
    "figures": ("docs/figures.md", figures),
}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown; a bar within a cell is escaped."""
    lines = [list(head), *(list(row) for row in rows)]
    written = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([written[0], "|---" * len(lines[0]) + "|", *written[1:]])


def first_paragraph(gate: type[Gate]) -> str:
    """The first paragraph of the gate's module, without numbers of hazards."""
    text = inspect.getdoc(inspect.getmodule(gate)) or gate.title
    return HAZARDS.sub("", " ".join(text.split("\n\n")[0].split()))


def about_package(name: str) -> str:
    """The first line of a package's docstring."""
    source = (ROOT / name / "__init__.py").read_text(encoding="utf-8")
    return source.split('"""')[1].strip().splitlines()[0] if '"""' in source else ""


def default(name: str, value: Any) -> str:
    """The default of an option. Its length of time is spelt out: 28800 is "8 h"."""
    if value is None or value in ({}, ""):
        return "none"
    if name.endswith("_s"):
        return spell(timedelta(seconds=value)) if value else "0"
    return str(value).lower() if isinstance(value, bool) else str(value)


def names_of(layers_text: str) -> list[list[str]]:
    return [[name.strip() for name in line.split("|")] for line in layers_text.split("\n") if line.strip()]


def mark(name: str) -> str:
    return f"<!-- generated: {name}, by bin/tables -->"


def with_table(text: str, name: str, written: str) -> str:
    """The document with this table in the place that its marks enclose.

    :raises ValueError: when the document lacks the marks
    """
    begin, end = mark(name), "<!-- end -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"lacks {begin} … {end}")
    return f"{before}{begin}\n{written}\n{end}{after}"


def main() -> int:
    """Writes every table, or with no argument compares; returns 1 when one differs."""
    is_writing = sys.argv[1:] == ["--write"]
    stale = []
    for name, (path, make) in TABLES.items():
        document = ROOT / path
        text = document.read_text(encoding="utf-8")
        fresh = with_table(text, name, make())
        if fresh == text:
            continue
        stale.append(f"{path}: the table of {name} differs from the code")
        if is_writing:
            document.write_text(fresh, encoding="utf-8")
    module, types = ROOT / "cli" / "rest_types.py", rest_types(schema(), ROOT / "cli")
    if not module.exists() or module.read_text(encoding="utf-8") != types:
        stale.append("cli/rest_types.py: the types of the command line differ from the schema of REST")
        if is_writing:
            module.write_text(types, encoding="utf-8")
    if stale:
        sys.stdout.write("\n".join(stale) + ("\nwritten\n" if is_writing else "\nRun bin/tables.\n"))
    return 0 if is_writing else bool(stale)


if __name__ == "__main__":
    sys.exit(main())

"""What a process keeps for as long as it lives has a bound: a worker is not to grow until somebody restarts it.

Whatever is remembered between two rounds, two looks or two requests is one of these: a function that remembers what it
answered, or a container of a module. Each that Python itself does not bound stands here with what does.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.rooms import PRODUCT, ROOT

A_KIND = "a key a model or serializer of ours"
REGISTERED = "what apps register when they are ready"
A_CLUSTER = "a key a cluster"
REMEMBERS = {
    "edges/rest.py:_names_of": A_KIND,
    "fleet/allocation/sums.py:_counting": "two keys",
    "fleet/allocation/sums.py:addition_to": A_KIND,
    "fleet/models/sums.py:added_up": A_KIND,
    "fleet/observer/mirror/validation.py:_checks_of": A_KIND,
    "fleet/observer/persistence/upsert_statement.py:_statement": "a key a model and choice of its columns, in code",
    "fleet/observer/persistence/upsert.py:columns_of": A_KIND,
    "gpu/compatibility/matrix.py:the_matrix": "no key",
    "gpu/entry_files.py:_hints_of": "a key a dataclass of entries",
    "health/telemetry/prometheus/client.py:_trusted_by_all": "no key",
    "rollouts/windows/schedule.py:zone_named": "a key a time zone that there is: of another name it raises",
    "rollouts/windows/schedule.py:zones": "no key",
}
CONTAINERS = {
    "capacity/compared_nodes.py:_kept": "so many, and the oldest goes",
    "config/sqlite3/base.py:_private_files": "databases of this process",
    "fleet/clusters/acceptance.py:OBJECTIONS": REGISTERED,
    "fleet/history/lines.py:MORE": REGISTERED,
    "fleet/history/lines.py:OF_A_GPU": REGISTERED,
    "fleet/history/moment.py:TRUE_THEN": REGISTERED,
    "fleet/retention.py:ALSO": REGISTERED,
    "fleet/web/fleet_page.py:NODE_ACTS": REGISTERED,
    "fleet/live/guard.py:_guards": "weak: a key an event loop",
    "fleet/live/heart.py:_hearts": "weak: a key an event loop",
    "fleet/messages/listeners.py:CHANGED": REGISTERED,
    "fleet/messages/listeners.py:CRASHED": REGISTERED,
    "fleet/messages/listeners.py:HAPPENED": REGISTERED,
    "fleet/messages/listeners.py:RECORDED": REGISTERED,
    "fleet/messages/listeners.py:STATE_CHANGED": REGISTERED,
    "fleet/messages/numbers.py:MORE": REGISTERED,
    "fleet/observer/mirror/memory.py:_memories": A_CLUSTER,
    "fleet/observer/mirror/rows/cpu_memory.py:NOTHING": "never written",
    "fleet/pools/approval_rules.py:LISTENERS": REGISTERED,
    "fleet/pools/approval_rules.py:LOCKS": REGISTERED,
    "fleet/pools/changes.py:CHANGED": REGISTERED,
    "fleet/pools/changes.py:GOES_WITH": REGISTERED,
    "fleet/pod_reasons.py:READERS": REGISTERED,
    "fleet/pod_reasons.py:REFINERS": REGISTERED,
    "fleet/web/node_gpus.py:SICKNESSES": REGISTERED,
    "health/gpus/roster_cache.py:_kept": A_CLUSTER,
    "health/gpus/roster_cache.py:_joined": "one, of the kept clusters",
    "health/stack/pods.py:_kept": "so many, and the oldest goes",
    "health/evaluation/finding_sources.py:SOURCES": REGISTERED,
    "health/evaluation/node_properties.py:FROM_ABOVE": REGISTERED,
    "health/sources/snapshots.py:_clients": "an address of Redis",
    "health/sources/snapshots.py:_exporters": "so many, and the oldest goes",
    "health/sources/snapshots.py:_orders": "so many, and the oldest goes",
    "health/sources/history.py:_asked": "queries that are being answered: four at once",
    "health/sources/history.py:_kept": A_CLUSTER,
    "health/sources/source_round.py:_known": A_CLUSTER,
    "health/stack/causes/predicates.py:PREDICATES": "a key a function, at import",
    "health/inbox/shift_report.py:OPEN_CASES": REGISTERED,
    "health/sources/usage.py:IN_CHANGE": REGISTERED,
    "health/sources/usage.py:RECORDED": REGISTERED,
    "health/subjects.py:PAGES": REGISTERED,
    "health/wake.py:_crash_logs_woken": A_CLUSTER,
    "health/web/findings_page.py:NO_DATES": "never written",
    "operations/followers.py:FOLLOWERS": REGISTERED,
    "operations/followers.py:OPENERS": REGISTERED,
    "operations/restraints.py:AFTER_RESTORE": REGISTERED,
    "operations/restraints.py:DRIVER_VETOES": REGISTERED,
    "operations/restraints.py:OPERATION_VETOES": REGISTERED,
    "operations/restraints.py:RELEASE_VETOES": REGISTERED,
    "people/places.py:_sources": REGISTERED,
}
EMPTY = {"{}", "[]", "set()", "dict()", "list()"}
MADE = ("OrderedDict(", "defaultdict(", "WeakKeyDictionary(", "Counter(", "Queue(", "deque(")


@cache
def found() -> tuple[set[str], set[str]]:
    """Functions that remember all their answers, and empty containers of modules: one pass through the product."""
    functions, held = set(), set()
    for room in PRODUCT:
        for path in sorted((ROOT / room).rglob("*.py")):
            if "migrations" not in path.parts:
                name, module = str(path.relative_to(ROOT)), ast.parse(path.read_text())
                functions |= {f"{name}:{function}" for function in remembering(module)}
                held |= {f"{name}:{container}" for container in containers(module)}
    return functions, held


def is_unbounded(decorator: ast.expr) -> bool:
    said = ast.unparse(decorator).removeprefix("functools.")
    return said == "cache" or "maxsize=None" in said


def remembering(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function and any(is_unbounded(each) for each in node.decorator_list):
            yield node.name


def containers(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            value, target = ast.unparse(node.value), node.targets[0] if isinstance(node, ast.Assign) else node.target
            if value in EMPTY or value.startswith(MADE):
                yield ast.unparse(target)


def test_every_function_that_remembers_all_it_ever_answered_has_few_answers():
    functions, _ = found()

    assert functions == set(REMEMBERS)


def test_every_container_of_a_module_has_a_bound():
    _, held = found()

    assert held == set(CONTAINERS)


def test_an_engine_keeps_nothing_between_two_rounds():
    """All that a plan is decided on is read anew: what a worker knew dies with it, and is in the rows."""
    _, held = found()

    assert not [each for each in held if each.startswith("rollouts/") and Path(each).parts[1] == "engine"]

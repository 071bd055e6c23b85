"""Evaluation of `when` conditions against facts. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpu.compatibility.facts import Facts
from gpu.compatibility.matrix import Matrix, a_range, is_named
from gpu.compatibility.ranges import is_of, order
from gpu.compatibility.systems import System

VERSIONS = ("operator", "kubernetes", "driver", "toolkit", "mig_manager", "cuda")
SWITCHES = ("cdi", "nri", "rdma", "gds", "gdrcopy", "is_preinstalled", "is_precompiled")
TEXTS = ("mig", "distribution", "mode", "modules")
KEYS = frozenset({*VERSIONS, *SWITCHES, *TEXTS, "runtime", "os", "products", "is_grace"})


def all_conditions_hold(when: Mapping[str, Any], facts: Facts, matrix: Matrix) -> bool | None:
    """Tells whether all conditions hold. None: all others hold, but a switch is unknown."""
    answers = [_condition_holds(key, wanted, facts, matrix) for key, wanted in when.items()]
    if not all(answer is None or answer for answer in answers):
        return False
    return None if None in answers else True


def is_system(system: System, listed: Sequence[str]) -> bool:
    """Tells whether a list contains the system, as "ubuntu 24.04", "rhel 9" or "rhcos"."""
    for text in listed:
        name, _, version = text.partition(" ")
        if system.name == name and (not version or is_of(system.version, version)):
            return True
    return False


def _condition_holds(key: str, wanted: Any, facts: Facts, matrix: Matrix) -> bool | None:
    if key in VERSIONS:
        return _is_version(getattr(facts, key), wanted)
    if key in SWITCHES:
        actual = getattr(facts, key)
        return None if actual is None else actual is wanted
    if key in TEXTS:
        return getattr(facts, key) in ([wanted] if isinstance(wanted, str) else wanted)
    if key == "runtime":
        return facts.runtime_name == wanted["name"] and _is_runtime_version(facts.runtime_version, wanted)
    if key == "os":
        return is_system(facts.system, wanted)
    if key == "products":
        return is_named(facts.product, wanted)
    if key == "is_grace":
        return matrix.is_grace(facts.product) is wanted
    raise ValueError(f"{key} is no condition")


def _is_version(version: str, wanted: Any) -> bool:
    """Tells whether the version is a listed build or within bounds. An unknown version is neither."""
    if isinstance(wanted, list):
        return bool(version) and order(version) in [order(build) for build in wanted]
    return version in a_range(wanted)


def _is_runtime_version(version: str, wanted: Mapping[str, str]) -> bool:
    return not wanted.keys() & {"from", "before"} or version in a_range(wanted)

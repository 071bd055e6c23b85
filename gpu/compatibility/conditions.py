"""Whether all that stands under `when` is true of some facts. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpu.compatibility.facts import Facts
from gpu.compatibility.matrix import Matrix, a_range, is_named
from gpu.compatibility.ranges import is_of, order
from gpu.compatibility.systems import System

VERSIONS = ("operator", "kubernetes", "driver", "toolkit", "mig_manager", "cuda")
SWITCHES = ("cdi", "nri", "rdma", "gds", "gdrcopy", "is_preinstalled", "is_precompiled")
WORDS = ("mig", "distribution", "mode", "modules")
KEYS = frozenset({*VERSIONS, *SWITCHES, *WORDS, "runtime", "os", "products", "is_grace"})


def holds(when: Mapping[str, Any], facts: Facts, matrix: Matrix) -> bool | None:
    """None: all the rest is true, but a switch cannot be read."""
    answers = [_holds(key, wanted, facts, matrix) for key, wanted in when.items()]
    if not all(answer is None or answer for answer in answers):
        return False
    return None if None in answers else True


def is_system(system: System, listed: Sequence[str]) -> bool:
    """Whether "ubuntu 24.04", "rhel 9" or "rhcos" stands in a list."""
    for text in listed:
        name, _, version = text.partition(" ")
        if system.name == name and (not version or is_of(system.version, version)):
            return True
    return False


def _holds(key: str, wanted: Any, facts: Facts, matrix: Matrix) -> bool | None:
    if key in VERSIONS:
        return _is_version(getattr(facts, key), wanted)
    if key in SWITCHES:
        seen = getattr(facts, key)
        return None if seen is None else seen is wanted
    if key in WORDS:
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
    """One of some builds, or within bounds. A version that is not known is neither."""
    if isinstance(wanted, list):
        return bool(version) and order(version) in [order(build) for build in wanted]
    return version in a_range(wanted)


def _is_runtime_version(version: str, wanted: Mapping[str, str]) -> bool:
    return not wanted.keys() & {"from", "before"} or version in a_range(wanted)

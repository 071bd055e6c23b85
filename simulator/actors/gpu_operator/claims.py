"""Which NVIDIADriver a node belongs to. Two that claim one node are both refused, and nothing is changed."""

from simulator.actors.gpu_operator import keys
from simulator.actors.objects import Obj, labels, name, spec


def is_default(driver: Obj) -> bool:
    return bool(spec(driver).get("default"))


def claims(driver: Obj, node: Obj) -> bool:
    """An equality map; without one, every GPU node."""
    wanted = spec(driver).get("nodeSelector") or {}
    has = labels(node)
    return has.get(keys.PRESENT) == "true" and all(has.get(key) == value for key, value in wanted.items())


def owner_of(node: Obj, drivers: list[Obj]) -> str:
    """Empty: nobody's. A default takes what no other claims."""
    named = [driver for driver in drivers if not is_default(driver) and claims(driver, node)]
    fallback = [driver for driver in drivers if is_default(driver) and claims(driver, node)]
    return name((named or fallback)[0]) if named or fallback else ""


def in_conflict(nodes: list[Obj], drivers: list[Obj]) -> set[str]:
    """The names of drivers that share a node with another."""
    clashing: set[str] = set()
    for node in nodes:
        both = [name(driver) for driver in drivers if not is_default(driver) and claims(driver, node)]
        if len(both) > 1:
            clashing.update(both)
    return clashing

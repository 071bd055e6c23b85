"""Whose a field is: of all that an API server keeps there, who set `spec.unschedulable` of a node.

kubernetes.io/docs/reference/using-api/server-side-apply, Field management: a client that names no field manager is
known by what its User-Agent has before the first slash. A field that is not there is nobody's.
"""

from typing import Any

from simulator.clock import stamp
from simulator.kinds import NODE, Kind

Obj = dict[str, Any]


def manager_of(asked: str, user_agent: str) -> str:
    """`asked`: the query's `fieldManager`, blank where there is none."""
    return asked or user_agent.partition("/")[0][:128]


def kept(kind: Kind, old: Obj, new: Obj, manager: str, *, now: Any) -> Obj:
    """`new` with whose its cordon is: of who set it, not of who only left it as it was."""
    if kind is not NODE:
        return new
    was, is_set = (bool((each.get("spec") or {}).get("unschedulable")) for each in (old, new))
    entries = old["metadata"].get("managedFields") if was and is_set else None
    if is_set and not was and manager:
        entries = [
            {
                "manager": manager,
                "operation": "Update",
                "apiVersion": kind.api_version,
                "time": stamp(now),
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:unschedulable": {}}},
            }
        ]
    metadata = {key: value for key, value in new["metadata"].items() if key != "managedFields"}
    return {**new, "metadata": {**metadata, **({"managedFields": entries} if entries else {})}}

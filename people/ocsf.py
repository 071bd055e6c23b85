"""Decisions as events of the Open Cybersecurity Schema Framework. Pure.

Classes and fields as in OCSF 1.5.0 (github.com/ocsf/ocsf-schema at 78bf68a: events/iam, objects, dictionary.json). The
integrity of the chain is in `unmapped`, since 1.5.0 has no field for it.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

SCHEMA = "1.5.0"
IAM = 3  # the category
ACCOUNT_CHANGE, ENTITY_MANAGEMENT, USER_ACCESS, GROUP_MANAGEMENT = 3001, 3004, 3005, 3006
INFORMATIONAL, MEDIUM = 1, 3
SUCCESS, FAILURE = 1, 2
OTHER = 99
# The class and the activity of verbs of people and groups.
OF_PEOPLE: Mapping[str, tuple[int, int]] = {
    "person.add": (ACCOUNT_CHANGE, 1),
    "person.switch-on": (ACCOUNT_CHANGE, 2),
    "person.password": (ACCOUNT_CHANGE, 3),
    "person.switch-off": (ACCOUNT_CHANGE, 5),
    "person.second-factor": (ACCOUNT_CHANGE, 10),
    "person.second-factor-removal": (ACCOUNT_CHANGE, 11),
    "role.grant": (USER_ACCESS, 1),
    "role.take": (USER_ACCESS, 2),
    "group.join": (GROUP_MANAGEMENT, 3),
    "group.leave": (GROUP_MANAGEMENT, 4),
    "group.remove": (GROUP_MANAGEMENT, 5),
    "group.add": (GROUP_MANAGEMENT, 6),
}
# Activities of Entity Management by the last word of a verb, such as “add” of “channel.add”.
OF_ENTITIES: Mapping[str, int] = {
    "add": 1, "issue": 1, "change": 3, "put": 3, "set": 3, "remove": 4, "revoke": 4, "discard": 4,
    "pause": 12, "resume": 13,
}  # fmt: skip


def event_of(row: Mapping[str, Any], *, instance: str, version: str) -> dict[str, Any]:
    """Returns the event of a row of the audit trail. `instance` is the name of this installation."""
    kind, _, key = row["subject"].partition(":" if ":" in row["subject"] else "-")
    verb, evidence = row["verb"], row["evidence"] or {}
    class_uid, activity = OF_PEOPLE.get(verb) or (ENTITY_MANAGEMENT, OF_ENTITIES.get(verb.rpartition(".")[2], OTHER))
    at: datetime = row["at"]
    own = _target(class_uid, kind, key, row, evidence)
    rest = () if "entity" in own else ("reason", "evidence")  # other classes have no field for them
    return {
        "category_uid": IAM,
        "class_uid": class_uid,
        "activity_id": activity,
        "activity_name": verb,
        "type_uid": class_uid * 100 + activity,
        "time": round(at.timestamp() * 1000),
        "severity_id": MEDIUM if verb == "break-glass" else INFORMATIONAL,
        "status_id": FAILURE if verb.endswith("refused") else SUCCESS,
        "message": f"{row['actor']}: {verb} {row['subject']}",
        "actor": {"user": {"name": row["actor"]}},
        **own,
        "metadata": {
            "version": SCHEMA,
            "product": {"name": "Quarterdeck", "vendor_name": "Quarterdeck", "version": version, "uid": instance},
            "uid": f"{instance}/{row['id']}",
            "sequence": row["id"],
            "event_code": verb,
            "log_name": "audit",
        },
        "unmapped": {name: row[name] for name in ("subject", "number", "hash", "previous_hash", *rest)},
    }


def _target(class_uid: int, kind: str, key: str, row: Mapping[str, Any], evidence: Mapping[str, Any]) -> dict[str, Any]:
    person = {"name": evidence.get("person", ""), "uid": key}
    if class_uid == ACCOUNT_CHANGE:
        return {"user": person}
    if class_uid == USER_ACCESS:
        return {"user": person, "privileges": [f"{evidence.get('role')} on {evidence.get('on')}"]}
    if class_uid == GROUP_MANAGEMENT:
        member = {"user": {"name": evidence["person"]}} if "person" in evidence else {}
        return {"group": {"name": evidence.get("group", ""), "uid": key}, **member}
    entity = {"type_id": OTHER, "type": kind, "uid": key, "name": row["subject"], "data": evidence}
    return {"entity": entity, "comment": row["reason"]}

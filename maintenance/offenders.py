"""Boards and nodes with several cases in 30 days: a list for people, never an automatic act (lifecycle R37).

A board is known by the UUID of its GPU, and by its serial number where a diagnostic reported it. A node is known by its
UID, so that a new node under an old name starts without a history.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser

from health.inbox.queries import titles
from maintenance.models import NodeCase
from maintenance.repeat_offenders import COUNTED, is_again
from operations.models import NodeTestJob
from people.models import User

FEWEST = 2  # cases of one board or node
MOST_CASES, MOST = 5000, 200  # cases that are read, the newest first; rows
MOST_REPORTS = 1000  # of diagnostics, the newest first, for the serial numbers


@dataclass(frozen=True)
class Offender:
    """A board, or a node with cases of several boards or of none."""

    cluster: str
    board: str  # UUID of the GPU; blank: the node
    serial: str  # of the board; blank: no diagnostic reported it
    nodes: Sequence[str]  # names, the newest first
    cases: Sequence[NodeCase]  # the newest first
    repairs: int
    again: int  # cases that began within 7 days of a repair

    @property
    def case_ids(self) -> Sequence[int]:
        return [case.pk for case in self.cases]

    @property
    def last_at(self) -> datetime:
        return self.cases[0].opened_at

    @property
    def fault_titles(self) -> Sequence[str]:
        return [titles().get(each, each) for each in self.faults]

    @property
    def faults(self) -> Sequence[str]:
        return list(dict.fromkeys(case.finding.rule if case.finding else "no finding" for case in self.cases))


class Offenders(NamedTuple):
    rows: Sequence[Offender]  # the worst first
    is_more: bool  # more than `MOST`
    is_cut: bool  # the newest `MOST_CASES` cases were read, and there are older ones


def offenders(user: User | AnonymousUser, *, now: datetime) -> Offenders:
    """Returns the boards and nodes with the most cases that the user may see. Two queries."""
    rows = NodeCase.objects.visible_to(user).filter(opened_at__gt=now - COUNTED, is_new=False)
    cases = list(rows.select_related("finding", "cluster").order_by("-opened_at", "-pk")[: MOST_CASES + 1])
    is_cut, cases = len(cases) > MOST_CASES, cases[:MOST_CASES]
    boards: dict[tuple[int, str], list[NodeCase]] = defaultdict(list)
    nodes: dict[tuple[int, str], list[NodeCase]] = defaultdict(list)
    for case in cases:
        nodes[case.cluster_id, case.node_uid].append(case)
        if case.finding and case.finding.gpu_uuid:
            boards[case.cluster_id, case.finding.gpu_uuid].append(case)
    of_boards = {key: its for key, its in boards.items() if len(its) >= FEWEST}
    listed = {case.pk for its in of_boards.values() for case in its}
    of_nodes = [its for its in nodes.values() if len(its) >= FEWEST and any(case.pk not in listed for case in its)]
    serials = _serials(case.node_uid for its in of_boards.values() for case in its)
    found = [_offender(its, board=board, serial=serials.get(board, "")) for (_, board), its in of_boards.items()]
    found += [_offender(its) for its in of_nodes]
    found.sort(key=lambda each: (-len(each.cases), -each.again, -each.last_at.timestamp()))
    return Offenders(found[:MOST], is_more=len(found) > MOST, is_cut=is_cut)


def _offender(cases: Sequence[NodeCase], *, board: str = "", serial: str = "") -> Offender:
    repaired = [case.repaired_at for case in cases if case.repaired_at]
    others = {case.pk: [each.repaired_at for each in cases if each.pk != case.pk] for case in cases}
    again = sum(any(is_again(case, at) for at in others[case.pk]) for case in cases)
    names = list(dict.fromkeys(case.node_name for case in cases))
    return Offender(cases[0].cluster.name, board, serial, names, cases, len(repaired), again)


def _serials(node_uids: Iterable[str]) -> dict[str, str]:
    """Returns serial numbers of boards by UUID, from the newest diagnostics of their nodes. One query.

    A diagnostic numbers the GPUs of its container, which has all GPUs of the node in order.
    """
    uids: Collection[str] = set(node_uids)
    rows = NodeTestJob.objects.filter(node_uid__in=uids, diag__isnull=False, gpu_uuids__isnull=False)
    found: dict[str, str] = {}
    for uuids, diag in rows.order_by("-pk").values_list("gpu_uuids", "diag")[:MOST_REPORTS]:
        serials = (diag or {}).get("serials", {})
        if uuids is not None and len(serials) == len(uuids):
            newest = {uuid: serials[str(index)] for index, uuid in enumerate(uuids) if str(index) in serials}
            found = newest | found
    return found

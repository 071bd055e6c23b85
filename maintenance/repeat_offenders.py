"""Earlier repairs of the same board or node: hardware that fails again is replaced, not rebooted (lifecycle R37).

A board is known by the UUID of the GPU that the finding names, so it is recognised in another node of the cluster. How
often each kind of repair mended the same fault on other nodes is counted, too (R76).
"""

from collections import Counter
from datetime import datetime, timedelta

from django.db.models import Q

from health.models import Finding
from maintenance.lifecycle import CaseState, RepairAnswer
from maintenance.models import NodeCase, Repair
from maintenance.step_choice import OFFENDS_WITHIN
from people.models import User
from wording.durations import spell
from wording.lists import names
from wording.numbers import count

COUNTED = timedelta(days=30)
RETURNED, GONE = frozenset({CaseState.CLOSED, CaseState.PROBATION}), frozenset({CaseState.RETIRED})
MOST_REPAIRS = 500  # newest ones that are counted
MANY = 3  # repairs of one board or node in that time


def earlier_repairs(case: NodeCase) -> list[NodeCase]:
    """Returns other cases of the same board or node with a repair in the last 30 days, the newest first. One query."""
    same = Q(node_uid=case.node_uid)
    if case.finding and case.finding.gpu_uuid:
        same |= Q(finding__gpu_uuid=case.finding.gpu_uuid)
    rows = NodeCase.objects.filter(same, cluster=case.cluster_id, repaired_at__gt=case.opened_at - COUNTED)
    return list(rows.filter(repaired_at__lte=case.opened_at).exclude(pk=case.pk).order_by("-repaired_at", "-pk"))


def why_replace(case: NodeCase, *, viewer: User | None = None) -> str:
    """Returns why another repair will probably not last. Blank: nothing says so. Two queries.

    Names the cases that the viewer may see. Without a viewer, those of the same node: whoever sees the case sees them.
    """
    earlier = earlier_repairs(case)
    if not earlier:
        return ""
    recent = [each for each in earlier if is_again(case, each.repaired_at)]
    if not recent and len(earlier) < MANY:
        return ""
    counted = recent or earlier
    keys = [each.pk for each in counted]
    rows = NodeCase.objects.of_node(case.node_uid) if viewer is None else NodeCase.objects.visible_to(viewer)
    shown = set(rows.filter(pk__in=keys).values_list("pk", flat=True))
    listed = names([f"case {each.pk} on {each.node_name}" for each in counted if each.pk in shown])
    cases = f" ({listed})" if listed else ""
    how_often = f"{count(len(recent), 'repair')} in the 7 days" if recent else f"{len(earlier)} repairs in the 30 days"
    return f"{how_often} before this case{cases}. It may need other hardware."


def results_of_repairs(case: NodeCase) -> dict[str, str]:
    """Returns how often each kind of repair mended the fault in other cases of the cluster. None without a finding."""
    return results_for(case.finding, but=case) if case.finding else {}


def results_for(finding: Finding, *, but: NodeCase | None = None) -> dict[str, str]:
    """Returns how often each kind of repair mended the fault in other cases of the cluster: {"reboot": "12 of 15"}.

    The last repair of a case counts as one that mended if its node returned, and each other one as one that did not. A
    retired case is left out without a test after its repair: its node may have left. One query.
    """
    ended = Repair.objects.filter(answer=RepairAnswer.DONE, ended_at__isnull=False, case__state__in=(RETURNED | GONE))
    same = ended.filter(case__cluster=finding.cluster_id, case__finding__rule=finding.rule)
    same = same.exclude(case__finding=finding)
    same = same.exclude(case=but.pk) if but else same
    if finding.xid is not None:
        same = same.filter(case__finding__facts__xid=finding.xid)
    untested = Q(case__state__in=GONE, case__failed_at=None)
    rows = same.exclude(untested).order_by("-pk").values_list("case", "kind", "case__state")[:MOST_REPAIRS]
    tried, mended, seen = Counter[str](), Counter[str](), set[int]()
    for key, kind, state in rows:
        tried[kind] += 1
        mended[kind] += key not in seen and state in RETURNED
        seen.add(key)
    return {kind: f"{mended[kind]} of {number}" for kind, number in sorted(tried.items())}


def usual_duration(repair: Repair) -> str:
    """Returns how long such repairs took in the cluster. Blank: none is known. One query."""
    alike = Repair.objects.filter(by=repair.by, kind=repair.kind, answer=RepairAnswer.DONE, ended_at__isnull=False)
    alike = alike.filter(case__cluster=repair.case.cluster_id).exclude(pk=repair.pk).order_by("-pk")
    took = [each.ended_at - each.asked_at for each in alike[:MOST_REPAIRS] if each.ended_at]
    return f"Usually {spell(sorted(took)[len(took) // 2])}, of {count(len(took), 'repair')}." if took else ""


def is_again(case: NodeCase, repaired_at: datetime | None) -> bool:
    """Returns whether the case began soon after a repair of the same board or node."""
    return repaired_at is not None and timedelta(0) <= case.opened_at - repaired_at < OFFENDS_WITHIN

"""The inbox: a list of findings, and the selected finding beside it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.core.paginator import Paginator
from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from edges.digits import whole_number
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.messages.numbers import numbers_of
from fleet.models import GoneNode, Pool
from fleet.models.node import members_of
from fleet.queries import pools_named, seen_pools_of
from fleet.web.summary import lines_for
from health.impact import Impact
from health.inbox.acts import mark_of
from health.inbox.finding_groups import FindingGroup, groups_of, together_with
from health.inbox.last_seen import dated
from health.inbox.markdown import as_markdown
from health.inbox.plots import is_of_telemetry, unit_of_limits
from health.inbox.queries import (
    AROUND,
    Detail,
    FindingCounts,
    as_seen_by,
    code_of,
    counts_of,
    detail_of,
    gone_node_of,
    impacts_of,
    titles,
)
from health.inbox.rights import why_not_act, why_not_mute
from health.inbox.source_trials import ages_of
from health.inbox.verbs import VERBS, why_not_now
from health.lifecycle import FindingState
from health.models import Finding, Mute, RuleShadow
from health.models.finding import WORST_FIRST, FindingQuerySet
from health.rules.base import Severity
from health.web.kept_input import pop_finding_input
from health.web.trouble import trouble_of
from people.models import User
from people.rights import Permission, people_with_permission

PER_PAGE = 50
TABS = {
    "mine": "Mine",
    "unacknowledged": "Unacknowledged",
    "all": "All",
    "muted": "Muted",
    "resolved": "Resolved",
}
MUTED_LAST = Case(
    When(state=FindingState.MUTED, then=Value(2)),
    When(state=FindingState.CONFIRMING, then=Value(1)),
    default=Value(0),
    output_field=IntegerField(),
)
HOURS = ((1, "1 hour"), (8, "8 hours"), (24, "1 day"), (72, "3 days"), (168, "7 days"), (336, "14 days"))


@dataclass(frozen=True)
class Filter:
    """The filter in the address. Unknown values match nothing."""

    cluster: str = ""
    pool: str = ""  # cluster/name
    severity: str = ""
    rule: str = ""
    together: int | None = None  # the key of a finding: filters to findings that began with it

    @classmethod
    def read(cls, request: PersonRequest) -> "Filter":
        asked = request.GET
        return cls(
            *(asked.get("cluster", "")[:63], asked.get("pool", "")[:127]),
            *(asked.get("severity", "")[:16], asked.get("rule", "")[:63]),
            whole_number(asked.get("together", "")[:18]),
        )

    @property
    def is_set(self) -> bool:
        return bool(self.cluster or self.pool or self.severity or self.rule or self.together)

    def of(self, rows: QuerySet[Finding], user: User) -> QuerySet[Finding]:
        """Returns the matching findings. A pool matches findings about its nodes."""
        named = {"cluster__name": self.cluster, "severity": self.severity, "rule": self.rule}
        rows = rows.filter(**{name: value for name, value in named.items() if value})
        if not self.pool:
            return rows
        cluster, _, pool = self.pool.rpartition("/")
        pools = Pool.objects.visible_to(user).filter(cluster__name=cluster, name=pool)
        return rows.filter(node__in=members_of(pools.values("pk")))


@dataclass(frozen=True)
class Tab:
    key: str
    label: str
    number: int


@dataclass(frozen=True)
class Row:
    finding: Finding
    impact: Impact | None
    under: int  # findings that are listed under it
    is_chosen: bool
    title: str  # of its rule
    code: str
    group: FindingGroup  # group that the row represents


@dataclass(frozen=True)
class ActButton:
    """A button; `why_not` is shown if it is disabled, and empty if it is enabled."""

    verb: str
    label: str
    consequence: str
    why_not: str
    needs_reason: bool
    seen: str = ""  # mark of the shown state, against concurrent changes


@dataclass(frozen=True)
class Chosen:
    detail: Detail
    may_not: str  # why this person may not act on it; blank: they may
    buttons: Mapping[str, ActButton]
    mutes: list[tuple[Mute, str]]  # with why this person may not lift it
    markdown: str
    is_of_telemetry: bool  # GPU telemetry around its start is evidence; plotted while its node exists
    plotted_until: datetime  # end of the plotted time
    limits_unit: str  # of limits that no line can show; blank: there are none
    scopes: list[tuple[str, str]]
    gone: GoneNode | None  # its node after it left
    before: int | None  # the keys of the previous and the next finding
    after: int | None
    people: Collection[str] = field(default_factory=list)


def inbox(request: PersonRequest) -> HttpResponse:
    clusters = lines_for(request, now=timezone.now())  # read first: later changes are fetched again
    seq = numbers_of({line.cluster.pk: line.seq for line in clusters})
    found = _inbox(request)
    chosen: Chosen | None = found["chosen"]
    written = pop_finding_input(request, chosen.detail.finding.pk) if chosen else {}
    return render(request, "health/findings/page.html", {"seq": seq, "written": written, **found})


@part_response
def inbox_part(request: PersonRequest) -> HttpResponse:
    return render(request, "health/findings/_body.html", _inbox(request))


def _inbox(request: PersonRequest) -> dict[str, Any]:
    user, now, asked = request.user, timezone.now(), request.GET
    tab = asked.get("tab", "all")
    tab = tab if tab in TABS else "all"
    wanted = Filter.read(request)
    clusters = lines_for(request, now=now)
    counts = counts_of(user)
    trouble = trouble_of(user, counts, clusters, now=now)
    rows = wanted.of(_rows_of_tab(user, tab), user)
    page = Paginator(_listed_findings(rows, tab, wanted, user), PER_PAGE).get_page(asked.get("page"))
    listed = (one if isinstance(one, FindingGroup) else FindingGroup((one,)) for one in page.object_list)
    groups = {group.first: group for group in listed}
    shown = dated(rows.filter(pk__in=list(groups)), last_seen_at=trouble.last_seen_at, now=now)
    as_seen_by(user, shown)
    key = whole_number(asked.get("finding", "")[:18])
    # A live page stays at the one that it was loaded with: its dialogs are about that.
    chosen = (
        _chosen(user, key, shown)
        if key
        else _chosen(user, whole_number(asked.get("shown", "")[:18]), shown, or_first=True)
    )
    impacts = impacts_of([*shown, chosen] if chosen else shown, now=now)
    detail = chosen and detail_of(chosen, user, impacts=impacts, last_seen_at=trouble.last_seen_at, now=now)
    return {
        "tab": tab,
        "tabs": [Tab(each, label, _number_in_tab(user, each, counts)) for each, label in TABS.items()],
        "counts": counts,
        "trouble": trouble,
        "filter": wanted,
        "page": page,
        "rows": _rows_with_impact(shown, groups, chosen, impacts),
        "is_asked": key is not None,
        "is_gone": key is not None and chosen is None,
        "chosen": detail and _chosen_finding(request, detail, shown, now=now),
        "clusters": [line.cluster.name for line in clusters],
        "pools": pools_named(user),
        "severities": list(Severity),
        "ages": [] if page.paginator.count else ages_of(user, clusters, now=now),
        "titles": titles(),
        "in_shadow_mode": RuleShadow.objects.in_force().count(),
        "hours": HOURS,
        "key": uuid4().hex,
    }


def _own_findings(user: User) -> FindingQuerySet:
    return Finding.objects.without_visible_cause(user).notified()


def _rows_of_tab(user: User, tab: str) -> QuerySet[Finding]:
    own = _own_findings(user).select_related("cluster")  # a row shows only the node's own findings
    if tab == "resolved":
        return own.filter(state=FindingState.RESOLVED).order_by("-resolved_at", "-pk")
    found = own.unresolved().order_by(MUTED_LAST, WORST_FIRST, "-since", "-pk")
    if tab == "mine":
        return found.filter(assigned_to=user.get_username())
    if tab == "unacknowledged":
        return found.filter(state=FindingState.OPEN)
    return found.filter(state=FindingState.MUTED) if tab == "muted" else found


def _listed_findings(
    rows: QuerySet[Finding], tab: str, wanted: Filter, user: User
) -> Sequence[FindingGroup | int] | QuerySet[Finding, int]:
    """Returns groups, or keys of single findings: resolved ones, and those of an expanded group."""
    if wanted.together is not None:
        rows = rows.filter(pk__in=together_with(wanted.together, _own_findings(user)))
    return rows.values_list("pk", flat=True) if tab == "resolved" or wanted.together is not None else groups_of(rows)


def _number_in_tab(user: User, tab: str, counts: FindingCounts) -> int:
    named = {"all": counts.unresolved, "unacknowledged": counts.open, "mine": counts.mine, "muted": counts.muted}
    return named[tab] if tab in named else _rows_of_tab(user, tab).count()


def _chosen(user: User, key: int | None, shown: list[Finding], *, or_first: bool = False) -> Finding | None:
    """Returns the finding in the address, or else the first of the list; None if none is visible to the user."""
    here = next((one for one in shown if one.pk == key), None)
    rows = Finding.objects.visible_to(user).select_related("cluster", "node", "parent")
    found = here or (rows.filter(pk=key).first() if key else None) or (shown[0] if shown and or_first else None)
    as_seen_by(user, [found] if found else [])
    return found


def _rows_with_impact(
    shown: list[Finding], groups: Mapping[int, FindingGroup], chosen: Finding | None, impacts: Mapping[int, Impact]
) -> list[Row]:
    under: dict[int, int] = {}
    children = Finding.objects.unresolved().filter(parent__in=[one.pk for one in shown]).order_by()
    for parent in filter(None, children.values_list("parent", flat=True)):
        under[parent] = under.get(parent, 0) + 1
    named = titles()
    return [
        Row(
            *(one, impacts.get(one.pk), under.get(one.pk, 0)),
            is_chosen=chosen is not None and chosen.pk in groups[one.pk].keys,
            title=named.get(one.rule, one.rule),
            code=code_of(one)[0],
            group=groups[one.pk],
        )
        for one in shown
    ]


def _chosen_finding(request: PersonRequest, detail: Detail, shown: list[Finding], *, now: datetime) -> Chosen:
    user, finding = request.user, detail.finding
    may_not = why_not_act(user, finding)
    keys = [one.pk for one in shown]
    place = keys.index(finding.pk) if finding.pk in keys else None
    link = request.build_absolute_uri(f"{reverse('findings')}?finding={finding.pk}")
    return Chosen(
        detail=detail,
        may_not=may_not,
        buttons={verb: _button(verb, finding, may_not) for verb in VERBS},
        mutes=[(mute, why_not_mute(user, mute)) for mute in detail.mutes],
        markdown=as_markdown(detail, link=link, now=now),
        is_of_telemetry=is_of_telemetry(finding),
        plotted_until=finding.since + AROUND,
        limits_unit=unit_of_limits(finding),
        scopes=_scopes(finding, detail, user),
        gone=gone_node_of(finding, user),
        before=keys[place - 1] if place else None,
        after=keys[place + 1] if place is not None and place + 1 < len(keys) else None,
        people=sorted(people_with_permission(Permission.SEE, cluster_id=finding.cluster_id)) if not may_not else [],
    )


def _button(verb: str, finding: Finding, may_not: str) -> ActButton:
    its = VERBS[verb]
    why_not = may_not or why_not_now(verb, FindingState(finding.state), acknowledged_by=finding.acknowledged_by)
    if not why_not and verb in ("accept", "dismiss") and finding.feedback:
        why_not = f"{finding.feedback_by} has already {finding.feedback} the action."
    if not why_not and verb == "unassign" and not (finding.assigned_to or finding.acknowledged_by):
        why_not = "The finding has no assignee."
    return ActButton(verb, its.label, its.consequence, why_not, its.needs_reason, mark_of(finding, verb))


def _scopes(finding: Finding, detail: Detail, user: User) -> list[tuple[str, str]]:
    """Returns the scopes of a mute: the form's name and the text for users."""
    title = detail.rule_title
    found = [("finding", "this finding, also when it comes back")]
    if finding.node is not None:
        found.append(("node", f"“{title}” on node {finding.node.name}"))
        pools = seen_pools_of(finding.node, user=user).values_list("pk", "name")
        found += [(f"pool-{pk}", f"“{title}” in pool {finding.cluster.name}/{name}") for pk, name in pools]
    return [*found, ("cluster", f"“{title}” in cluster {finding.cluster.name}")]

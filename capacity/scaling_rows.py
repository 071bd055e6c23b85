"""The objects of the autoscalers of a cluster, from the mirror."""

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db.models import Q

from capacity.wait_reasons.scaling_verdict import (
    CLAIM,
    CLAIMS,
    STATUS,
    ScalingClaim,
    ScalingFacts,
    ScalingGroup,
    ScalingPool,
)
from fleet.freshness.kinds import is_optional, name_of
from fleet.models import Bookmark, BookmarkState, ScalingObject
from kube.resources import NODE_CLAIMS, NODE_POOLS, SCALING_STATUS
from wording.lists import names

KINDS = (NODE_POOLS.name, NODE_CLAIMS.name, SCALING_STATUS.name)
TITLES = {NODE_CLAIMS.name: CLAIMS, SCALING_STATUS.name: STATUS}
CLAIMS_AT_MOST = 1000


def scaling_facts(cluster_id: int, messages: Collection[str], *, now: datetime) -> ScalingFacts:
    """Returns the facts, with the NodeClaims that these messages name. Two queries."""
    marks = {mark.kind: mark for mark in Bookmark.objects.filter(cluster=cluster_id, kind__in=KINDS)}
    missed = [kind for kind in KINDS if kind in marks and marks[kind].state == BookmarkState.FORBIDDEN]
    has_autoscaler = any("scale-up" in message for message in messages)  # the cluster autoscaler writes Events here
    forbidden = [name_of(kind) for kind in missed if has_autoscaler or not is_optional(kind)]
    known = {kind for kind, mark in marks.items() if mark.is_known}
    if not known:
        return ScalingFacts(unread=names(forbidden))
    named = {found for message in messages for found in re.findall(CLAIM, message)}
    where = ~Q(kind="NodeClaim") | Q(name__in=sorted(named)[:CLAIMS_AT_MOST])
    rows = list(ScalingObject.objects.filter(where, cluster=cluster_id).order_by("kind", "name"))
    status = next((row for row in rows if row.kind == "ClusterAutoscaler"), None)
    if status and "groups" not in status.facts:
        forbidden.append(f"{name_of(SCALING_STATUS.name)} ({status.facts.get('unread') or 'not understood'})")
        status = None
    stale = {title for kind, title in TITLES.items() if kind in known and not marks[kind].is_fresh(now=now)}
    return ScalingFacts(
        [_pool(row) for row in rows if row.kind == "NodePool"],
        {row.name: _claim(row) for row in rows if row.kind == "NodeClaim"} if NODE_CLAIMS.name in known else None,
        [_group(each) for each in status.facts["groups"]] if status else None,
        status.reason_at if status else None,
        names(forbidden),
        _seen_at(marks.get(NODE_CLAIMS.name)),
        _seen_at(marks.get(SCALING_STATUS.name)),
        stale,
    )


def _seen_at(mark: Bookmark | None) -> datetime | None:
    return mark.last_seen_at if mark and mark.is_known else None


def _pool(row: ScalingObject) -> ScalingPool:
    message = row.message or row.reason
    return ScalingPool(row.name, row.is_ready, message, row.facts.get("limits", {}), row.facts.get("used", {}))


def _claim(row: ScalingObject) -> ScalingClaim:
    return ScalingClaim(row.name, row.node_name, row.is_ready, row.reason, row.message)


def _group(group: Mapping[str, Any]) -> ScalingGroup:
    error = ": ".join(filter(None, [group["error_code"], group["error_message"]]))
    return ScalingGroup(group["name"], group["target"], group["largest"], group["unready"], group["scale_up"], error)

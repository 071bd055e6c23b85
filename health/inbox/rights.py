"""The right to act on a finding: that to stop a plan in its cluster, or in a pool of its node."""

from collections.abc import Iterable

from fleet.models import Cluster
from health.inbox.verbs import MAY, WHAT
from health.models import Finding, Mute
from people.models import User
from people.rights import NotAllowed, why_not


def why_not_act(user: User, finding: Finding) -> str:
    """Returns why the user may not act on the finding; empty if they may. Two queries at most."""
    return _why_not(user, finding.cluster, _pools_of(finding))


def require_act(user: User, finding: Finding) -> None:
    """Requires the right to act on the finding.

    :raises NotAllowed: with the sentence of `why_not_act`
    """
    _require(why_not_act(user, finding))


def why_not_mute(user: User, mute: Mute) -> str:
    """Returns why the user may not create or lift such a mute; empty if they may."""
    if mute.pool_id is not None:
        return _why_not(user, mute.cluster, [mute.pool_id])
    if mute.node is not None and (mute.subject or mute.node_name):
        return _why_not(user, mute.cluster, mute.node.pools.values_list("pk", flat=True))
    return _why_not(user, mute.cluster, [])


def require_mute(user: User, mute: Mute) -> None:
    """Requires the right to create or lift such a mute.

    :raises NotAllowed: with the sentence of `why_not_mute`
    """
    _require(why_not_mute(user, mute))


def may_see_finding(user: User, finding: Finding) -> bool:
    return Finding.objects.visible_to(user).filter(pk=finding.pk).exists()


def _pools_of(finding: Finding) -> Iterable[int]:
    return [] if finding.node is None else finding.node.pools.values_list("pk", flat=True)


def _why_not(user: User, cluster: Cluster, pool_ids: Iterable[int]) -> str:
    return why_not(user, MAY, cluster_id=cluster.pk, or_in=pool_ids, where=f"cluster {cluster.name}", what=WHAT)


def _require(said: str) -> None:
    if said:
        raise NotAllowed(said)

"""The last checks before each release: rows and cluster may have changed since the decision."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.functional import cached_property

from kube import client
from operations.models import Freeze
from rollouts.components.base import version_in
from rollouts.engine.act.writer import Writer
from rollouts.engine.live_state import newest_of, stopped_in_cluster
from rollouts.queries.driver_nodes import daemonsets_of
from rollouts.queries.restraints import restraint_by


def why_nothing_is_released(writer: Writer) -> str:
    """Returns why no node may be released: the stop, or a foreign change of the object. Empty means none."""
    if stopped := why_stopped(writer):
        return stopped
    if writer.asked is None or _requested_state(writer, _spec_now(writer)) == _requested_state(writer, writer.asked):
        return ""
    plan = writer.plan
    return f"Somebody has changed {plan.object_kind} {plan.object_name} in the meantime. The plan reads it again."


def why_stopped(writer: Writer) -> str:
    """Returns the sentence of a stop in force, by its ConfigMap or on a page. Empty means none."""
    if stopped := stopped_in_cluster(writer.plan, writer.connection):
        return stopped
    stop = Freeze.objects.filter(is_stop=True, ended_at=None).prefetch_related("cluster", "pool").first()
    return restraint_by(stop, now=writer.clock()).sentence if stop else ""  # ends only when a person lifts it


def _requested_state(writer: Writer, spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    return version_in(writer.component, spec), writer.component.template(spec) if spec else {}


def _spec_now(writer: Writer) -> Mapping[str, Any]:
    try:
        return client.get_driver_object_whole(writer.connection, writer.plan.object_kind, writer.plan.object_name)[1]
    except client.Absent:
        return {}


class OthersDrivers:
    """Tells of unmanaged nodes whether another driver object would replace their driver pod."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def would_change(self, name: str) -> bool:
        """Returns whether the node's driver pod would be replaced. It costs one request per driver namespace."""
        return any(
            pod.metadata.owner is not None
            and pod.metadata.deletion_timestamp is None
            and pod.metadata.owner.uid in self._newest
            and pod.labels.get("controller-revision-hash", "") != self._newest[pod.metadata.owner.uid]
            for namespace in self._namespaces
            for pod in client.list_pods_on(self.writer.connection, name, namespace=namespace)
        )

    @cached_property
    def _namespaces(self) -> list[str]:
        return sorted({row.namespace for row in self._daemonsets})

    @cached_property
    def _daemonsets(self) -> list[Any]:
        plan = self.writer.plan
        return list(daemonsets_of(plan.cluster_id, plan.its_component.operand).exclude(owner_uid=plan.object_uid))

    @cached_property
    def _newest(self) -> dict[str, str]:
        uids = {row.uid for row in self._daemonsets}
        seen = _flatten(client.list_revisions(self.writer.connection, namespace=one) for one in self._namespaces)
        return newest_of(revision for revision in seen if revision.daemonset_uid in uids)


def _flatten(lists: Iterable[Iterable[Any]]) -> Iterable[Any]:
    return (one for those in lists for one in those)

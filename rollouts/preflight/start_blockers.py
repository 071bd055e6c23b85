"""General blockers of a start: the cluster's observation state, its mode, another plan on the same object."""

from collections.abc import Iterator

from fleet.freshness.cluster import why_unseen
from fleet.models import ClusterMode
from kube.resources import CLUSTER_POLICIES
from rollouts.checks import Check
from rollouts.models import Plan
from rollouts.preflight.subject import PreflightSubject
from rollouts.queries.driver_nodes import row_age
from wording.reports import EvidenceItem

SEE_FIRST = ("Restore the connection to the cluster first.",)


def start_checks(subject: PreflightSubject) -> Iterator[Check]:
    plan, facts = subject.plan, subject.driver
    if stale := row_age(plan, now=subject.now).stale_reason:
        yield Check("stale", title="The cluster is not seen", summary=stale, steps=SEE_FIRST)
    elif unseen := why_unseen(plan.cluster_id, CLUSTER_POLICIES.name, now=subject.now):
        yield Check("stale", title="The ClusterPolicy is not seen", summary=unseen, steps=SEE_FIRST)
    if plan.cluster.mode != ClusterMode.OPERATE:
        title = f"Quarterdeck may not change cluster {plan.cluster.name}"
        step = f"Ask an admin to run bin/manage add_cluster {plan.cluster.name} --mode operate."
        yield Check("mode", title=title, summary=f"Its mode is {plan.cluster.mode}.", steps=(step,))
    if facts.object_version != plan.from_version:
        versions = (
            EvidenceItem("Version of the object", facts.object_version or "none"),
            EvidenceItem("Version in the draft", plan.from_version or "none"),
        )
        title = "The driver object changed after the draft was written"
        yield Check("drifted", title=title, evidence=versions, steps=("Draft the plan again.",))
    same_object = Plan.objects.under_way().filter(cluster=plan.cluster_id, object_uid=plan.object_uid)
    if other := same_object.exclude(pk=plan.pk).first():
        title = f"Plan {other.pk} is in progress on the same driver object"
        yield Check("busy", title=title, summary=f"Title: {other.title}.", steps=("Wait until it ends, or end it.",))

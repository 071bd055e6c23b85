"""General blockers of a start: the cluster's observation state, its mode, another plan on the same object."""

from collections.abc import Iterator

from fleet.freshness.cluster import why_unseen
from fleet.models import ClusterMode
from kube.resources import CLUSTER_POLICIES
from rollouts.checks import Check
from rollouts.models import Plan
from rollouts.preflight.subject import PreflightSubject
from rollouts.queries.driver_nodes import heard


def stands_against(subject: PreflightSubject) -> Iterator[Check]:
    plan, facts = subject.plan, subject.driver
    if stale := heard(plan, now=subject.now).stale_reason:
        yield Check("stale", stale, "A plan starts from what is seen; bring the cluster back into sight first.")
    elif unseen := why_unseen(plan.cluster_id, CLUSTER_POLICIES.name, now=subject.now):
        yield Check("stale", unseen, "It says whether the operator upgrades at all: bring it back into sight first.")
    if plan.cluster.mode != ClusterMode.OPERATE:
        sentence = f"Quarterdeck may not change {plan.cluster.name}: its mode is {plan.cluster.mode}."
        fix = f"An admin may change that: bin/manage add_cluster {plan.cluster.name} --mode operate."
        yield Check("mode", sentence, fix)
    if facts.object_version != plan.from_version:
        asks = f"asks for {facts.object_version}" if facts.object_version else "names no version"
        sentence = f"The object {asks} now; the plan was written for {plan.from_version or 'an object without one'}."
        yield Check("drifted", sentence, "Draft it anew.")
    same_object = Plan.objects.under_way().filter(cluster=plan.cluster_id, object_uid=plan.object_uid)
    if other := same_object.exclude(pk=plan.pk).first():
        yield Check("busy", f"{other} is in progress on the same object.", "One change at a time: end it first.")

"""Accepts a foreign uncordon: removes our marks from a node that somebody else returned to service."""

from typing import ClassVar

from gpu.labels import CORDONED_BY
from kube import client
from kube.structs import NodeSeen
from operations.models import Quarantine
from operations.node_exclusion import inclusion_of
from operations.steps.base import NodeStep, NodeWork, StepResult, done_result, failed


class DisownStep(NodeStep):
    """Removes marks only: it fails on a node that is cordoned, so no veto of a release applies."""

    key: ClassVar[str] = "disown"
    effect: ClassVar[str] = "Quarterdeck removes its marks. The node stays uncordoned."
    takes_node: ClassVar[bool] = False  # the quarantine has it, and ends

    def run(self, work: NodeWork) -> StepResult:
        row = Quarantine.objects.of_nodes([work.node.node_uid]).select_related("operation").first()
        if row is None:
            return done_result("Quarterdeck has no quarantine on the node.")

        def disowned(observed: NodeSeen) -> client.Patch:
            if observed.is_unschedulable:
                return []
            beside = inclusion_of(row, observed)
            is_ours = observed.annotations.get(CORDONED_BY) == row.operation.mark
            annotations = {**beside.annotations, **({CORDONED_BY: None} if is_ours else {})}
            return client.node_patch(observed, labels=beside.labels, annotations=annotations)

        observed = work.change_node(disowned)
        if observed.is_unschedulable:
            return failed("The node is cordoned again. Release it, or leave it in quarantine.")
        row.end(now=work.clock())
        return done_result("Somebody else uncordoned the node, and it stays in service. No mark is left.")

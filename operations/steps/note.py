"""Note: writes the reason of the operation on the timeline of each node. Nothing is written to the cluster."""

from typing import ClassVar

from fleet.history.notes import BadNote, add_note
from fleet.models import Node
from operations.steps.base import NodeStep, NodeWork, StepResult, done_result, failed
from people.models import User
from people.rights import NotAllowed


class NoteStep(NodeStep):
    key: ClassVar[str] = "note"
    takes_node: ClassVar[bool] = False
    waits_for_stop: ClassVar[bool] = False

    def run(self, work: NodeWork) -> StepResult:
        node = Node.objects.filter(cluster=work.operation.cluster_id, uid=work.node.node_uid).select_related("cluster")
        asker = User.objects.filter(username=work.operation.asked_by).first()
        if (row := node.first()) is None:
            return failed(f"{work.node.node_name} left the cluster.")
        if asker is None:
            return failed("Whoever asked for it has no account any more.")
        work.guard()
        try:
            add_note(row, asker, work.operation.reason, key=work.operation.mark, now=work.clock())
        except (NotAllowed, BadNote) as refusal:
            return failed(str(refusal))
        return done_result("The note is on the node's timeline.")

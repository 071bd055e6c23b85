"""A signed webhook: a program of yours, such as a bridge to a BMC, a cloud or a ticket system. It answers by REST."""

from collections.abc import Mapping
from typing import ClassVar

from maintenance.actors.base import ActorPlace, HttpActor, RepairTask
from maintenance.lifecycle import RepairKind


class WebhookActor(HttpActor):
    key: ClassVar[str] = "webhook"
    title: ClassVar[str] = "Signed webhook"
    kinds: ClassVar[frozenset[RepairKind]] = frozenset({RepairKind.REBOOT, RepairKind.HARDWARE})
    waiting: ClassVar[str] = "The receiver repairs the node and answers by REST. The case continues by itself."

    def why_not(self, place: ActorPlace) -> str:
        return super().why_not(place) or (
            "" if place.has_receiver else "No receiver is set for the node's pool or cluster."
        )

    def body(self, task: RepairTask) -> Mapping[str, object]:
        return {
            "type": f"repair.{task.kind}",
            "timestamp": task.asked_at.isoformat(),
            "data": {
                "request": task.request,
                "case": task.case,
                "kind": task.kind,
                "cluster": task.cluster,
                "node": task.node,
                "node_uid": task.node_uid,
                "fault": task.fault,
                "task": task.task,
                "asked_by": task.asked_by,
                "deadline": task.deadline.isoformat(),
                "answer_to": task.answer_to,
            },
        }

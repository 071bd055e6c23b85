"""One round of a repair: ask its actor, then read the answer. Safe to stop anywhere.

The intent, `sent_at`, is in the row before the first write. A webhook whose fate is unknown is not sent again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import transaction

from edges.failures import failure_sentence
from edges.transition_errors import LostRace
from edges.webhook_signatures import BadSigningSecret, signed_headers
from health.sources.posts import post_to
from health.sources.secrets import NoSecret
from health.telemetry.prometheus.answers import AnswerLost, Unusable
from kube import client
from maintenance import commands
from maintenance.actors import ACTORS
from maintenance.actors.base import UNCLEAR, ActorReport, HttpActor, RepairTask
from maintenance.lifecycle import CaseState, RepairAnswer, RepairKind
from maintenance.models import NodeCase, Repair
from maintenance.queries import other_owner, receiver_of
from maintenance.receivers import REPAIR_SECRETS
from maintenance.refusals import CaseRefused
from operations.restraints import freezes_of, stop_reason
from operations.stop_switch import stopped_by_switch
from operations.writer_lease import Forfeit, take_writer_lease
from wording.receivers import words_of

log = structlog.get_logger()
SOON, LATER = timedelta(seconds=5), timedelta(seconds=15)


def run_repair(repair_id: int, *, owner: str, clock: Callable[[], datetime]) -> None:
    rows = Repair.objects.to_ask().select_related("case__cluster", "case__finding")
    repair = rows.filter(pk=repair_id).first()
    if repair is None or not repair.take_lease(owner=owner, now=clock()):
        return
    try:
        report = _look_and_act(repair, clock=clock)
        _record(repair, report, now=clock())
    except (LostRace, CaseRefused) as lost:
        log.info("a round of a repair ended early", repair=repair.pk, reason=str(lost))
        report = ActorReport(repair.says)
    except Exception as bug:
        repair.end_lease(now=clock(), next_look_at=clock() + LATER, says=failure_sentence(bug))
        raise
    repair.end_lease(now=clock(), next_look_at=clock() + SOON, says="" if report.is_accepted else report.sentence)


def _record(repair: Repair, report: ActorReport, *, now: datetime) -> None:
    """Stores what the actor reports under the lease.

    :raises LostRace: when another worker has the turn
    :raises CaseRefused: when the case moved meanwhile
    """
    with transaction.atomic():
        repair.keep_lease(now=now)
        if report.is_accepted and repair.accepted_at is None:
            repair.mine().update(accepted_at=now)
            evidence = {"repair": repair.pk}
            repair.case.record("accepted", actor=repair.actor_title, reason=report.sentence, now=now, evidence=evidence)
        if report.answer:
            given = {"answer": report.answer, "actor": repair.actor_title, "reason": report.sentence}
            commands.answer_repair(repair.case, request=repair.request, now=now, **given)


def _look_and_act(repair: Repair, *, clock: Callable[[], datetime]) -> ActorReport:
    cluster = repair.case.cluster
    try:
        with closing(client.connect(cluster.kubeconfig, cluster.context)) as connection:
            take_writer_lease(connection, cluster, now=clock())
            return RepairRound(repair, connection, clock).go()
    except client.ClusterError as error:
        return ActorReport(f"{cluster.name}: {error}")
    except Forfeit as forfeit:
        return ActorReport(str(forfeit))


class RepairRound:
    def __init__(self, repair: Repair, connection: client.Connection, clock: Callable[[], datetime]) -> None:
        self.repair, self.case, self.connection, self.clock = repair, repair.case, connection, clock

    def go(self) -> ActorReport:
        """:raises ClusterError: when the cluster does not answer"""
        actor = ACTORS[self.repair.by]
        if isinstance(actor, HttpActor):
            return self._by_http(actor)
        raise TypeError(f"{actor.key} is asked by no worker")

    def _by_http(self, actor: HttpActor) -> ActorReport:
        if self.repair.sent_at is not None:
            return (
                ActorReport("", is_accepted=True)
                if self.repair.accepted_at
                else ActorReport(self.repair.says or UNCLEAR)
            )
        receiver = receiver_of(self.case)
        if receiver is None:
            return ActorReport("The receiver was removed. Set one, or answer the repair here.")
        try:
            secret = REPAIR_SECRETS.secret_at(receiver.secret_from, self.case.cluster.name)
            body = json.dumps(actor.body(self._task()), separators=(",", ":")).encode()
            headers = signed_headers(secret, self.repair.request, body, now=self.clock())
        except (NoSecret, BadSigningSecret) as error:
            return ActorReport(str(error))
        if reason := self._why_wait():
            return ActorReport(reason)
        self._intend()
        try:
            answer = post_to(receiver.address, body, headers, secret=secret, ca_file=receiver.ca_file)
        except AnswerLost as error:
            return ActorReport(f"{UNCLEAR} {error}")
        except Unusable as error:
            return ActorReport(f"The receiver was not reached. {error}", RepairAnswer.REFUSED)
        return actor.outcome(answer.status, words_of(answer.body))

    def _why_wait(self) -> str:
        """Returns why nothing may be written now, from the cluster itself. Blank: it may.

        :raises ClusterError: when the cluster does not answer
        """
        if stopped := stopped_by_switch(self.case.cluster, self.connection):
            return stopped
        node = client.get_node(self.connection, self.case.node_name)
        if node.uid != self.case.node_uid:
            return f"{self.case.node_name} is another node now."
        if not node.is_unschedulable:
            return "The node is not cordoned any more: pods could start there. Quarantine it again."
        if self.repair.kind == RepairKind.REBOOT and node.status.node_info.boot_id != self.repair.boot_id:
            return "The node booted since the reboot was asked for. It is not asked again."
        return self._why_not_now()

    def _why_not_now(self) -> str:
        now = self.clock()
        frozen = freezes_of(self.case.cluster_id, [self.case.node_uid], now=now)
        return stop_reason(now=now) or frozen.get(self.case.node_uid, "") or other_owner(self.case.node_uid)

    def _intend(self) -> None:
        """Records that the request is being sent, under everything that could forbid it.

        :raises LostRace: when the case moved, a stop or freeze began, or another worker has the turn
        """
        with transaction.atomic():
            now = self.clock()
            self.repair.keep_lease(now=now)
            if not NodeCase.objects.filter(pk=self.case.pk, state=CaseState.IN_REPAIR).exists():
                raise LostRace("The case is in repair no longer.")
            if reason := self._why_not_now():
                raise LostRace(reason)
            self.repair.mine().update(sent_at=now)
            self.repair.sent_at = now

    def _task(self) -> RepairTask:
        repair, case = self.repair, self.case
        path = f"/api/v1/cases/{case.pk}/repair-answers"
        return RepairTask(
            request=repair.request,
            case=case.pk,
            kind=RepairKind(repair.kind),
            cluster=case.cluster.name,
            node=case.node_name,
            node_uid=case.node_uid,
            fault=case.finding.title if case.finding else case.reason,
            task=repair.note,
            asked_by=repair.asked_by,
            asked_at=repair.asked_at,
            deadline=repair.deadline,
            answer_to=f"{settings.PUBLIC_URL.rstrip('/')}{path}" if settings.PUBLIC_URL else "",
        )

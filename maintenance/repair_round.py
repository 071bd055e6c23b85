"""One round of a repair: ask its actor, then read the answer. Safe to stop anywhere.

The intent, `sent_at`, is in the row before the first write. A webhook whose fate is unknown is not sent again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction

from edges.failures import failure_sentence
from edges.transition_errors import LostRace
from edges.webhook_signatures import BadSigningSecret, signed_headers
from fleet.models import Gpu
from gpu.cordons import SENTINEL_WORKS
from gpu.labels import MANAGED_BY, OURS, SENTINEL_STATE, UPGRADE_STATE
from gpu.upgrade_controller import NOT_AT_WORK
from health.sources.posts import post_to
from health.sources.secrets import NoSecret
from health.telemetry.prometheus.answers import AnswerLost, Unusable
from kube import client
from kube.resources import Resource
from kube.structs import CustomSeen
from maintenance import commands
from maintenance.actors import ACTORS
from maintenance.actors.base import (
    UNCLEAR,
    ActorReport,
    AnnotationActor,
    ClusterActor,
    HttpActor,
    ObjectActor,
    ObjectCondition,
    ObjectStatus,
    RepairTask,
)
from maintenance.automatic import ACTOR
from maintenance.lifecycle import NOT_LOOKED, CaseState, RepairAnswer, RepairKind
from maintenance.models import NodeCase, Repair
from maintenance.queries import other_owner, receiver_of
from maintenance.receivers import REPAIR_SECRETS
from maintenance.refusals import CaseRefused
from maintenance.repair_logs import collect_logs
from operations.external_owner import external_owner_on, not_looked_sentences
from operations.external_work import look_at_work
from operations.node_writer import remade
from operations.restraints import freezes_of, stop_reason
from operations.stop_switch import stopped_by_switch
from operations.writer_lease import Forfeit, take_writer_lease
from wording.receivers import words_of

log = structlog.get_logger()
OWNER = "quarterdeck.io/repair-request"  # annotation: the id of the request
ANNOTATION_UNCLEAR = "It is unclear whether the host has the request. It is not written again."
SOON, LATER = timedelta(seconds=5), timedelta(seconds=15)


def run_repair(repair_id: int, *, owner: str, clock: Callable[[], datetime]) -> None:
    rows = Repair.objects.to_ask() | Repair.objects.to_withdraw()
    repair = rows.select_related("case__cluster", "case__finding").filter(pk=repair_id).first()
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
    repair.end_lease(now=clock(), next_look_at=clock() + SOON, says=report.sentence)


def _record(repair: Repair, report: ActorReport, *, now: datetime) -> None:
    """Stores what the actor reports under the lease.

    :raises LostRace: when another worker has the turn
    :raises CaseRefused: when the case moved meanwhile
    """
    with transaction.atomic():
        repair.keep_lease(now=now)
        if report.is_withdrawn:
            repair.mine().update(withdrawn_at=now)
            return
        if report.is_accepted and repair.accepted_at is None:
            repair.mine().update(accepted_at=now)
            evidence = {"repair": repair.pk}
            sentence = report.sentence or "The request was read back."
            repair.case.record("accepted", actor=repair.actor_title, reason=sentence, now=now, evidence=evidence)
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
        self.not_looked = ""  # whose work on the node is unknown

    def go(self) -> ActorReport:
        """:raises ClusterError: when the cluster does not answer"""
        match ACTORS[self.repair.by]:
            case HttpActor() as actor:
                return self._by_http(actor)
            case AnnotationActor() as actor:
                return self._in_cluster(actor, partial(self._by_annotation, actor))
            case ObjectActor() as actor:
                return self._in_cluster(actor, partial(self._by_object, actor))
            case actor:
                raise TypeError(f"{actor.key} is asked by no worker")

    def _in_cluster(self, actor: ClusterActor, ask: Callable[[Resource[CustomSeen]], ActorReport]) -> ActorReport:
        resource = client.find_kinds(self.connection, {actor.object_kind: actor.group_suffix}).get(actor.object_kind)
        return ask(resource) if resource else ActorReport(f"The cluster serves no {actor.object_kind} any more.")

    def _by_object(self, actor: ObjectActor, resource: Resource[CustomSeen]) -> ActorReport:
        name = f"quarterdeck-case-{self.case.pk}-{self.repair.request[:8]}"
        try:
            observed = client.get_custom(self.connection, resource, name)
        except client.Absent:
            observed = None
        if self.repair.ended_at is not None:
            return self._withdraw_object(observed, resource)
        if observed is None and self.repair.accepted_at is not None:
            return ActorReport(f"Somebody deleted {resource.title} {name} before it ended.", RepairAnswer.UNCLEAR)
        if observed is None:
            task = self._task()
            if reason := actor.why_not_this(task):
                return ActorReport(reason)
            if unsent := self._why_unsent():
                return unsent
            self._intend()
            metadata = {"name": name, "labels": {MANAGED_BY: OURS}, "annotations": {OWNER: self.repair.request}}
            manifest = {"metadata": metadata, "spec": actor.spec(task)}
            try:
                observed = client.create_custom(self.connection, resource, manifest)
            except client.Conflict:
                observed = client.get_custom(self.connection, resource, name)
            except (client.Refused, client.Forbidden) as refusal:
                return ActorReport(f"The API server refused the {resource.title}: {refusal}", RepairAnswer.REFUSED)
        if observed.annotations.get(OWNER) != self.repair.request:
            return ActorReport(f"{resource.title} {name} has another owner.", RepairAnswer.REFUSED)
        report = actor.report(_status_of(observed))
        return replace(report, is_accepted=True)

    def _withdraw_object(self, observed: CustomSeen | None, resource: Resource[CustomSeen]) -> ActorReport:
        """Deletes the request of a repair that ended without success, unless the actor ended it."""
        is_ours = observed is not None and observed.annotations.get(OWNER) == self.repair.request
        if observed is not None and is_ours and not observed.status.completion_time:
            self.repair.keep_lease(now=self.clock())
            with suppress(client.Absent, client.Conflict):
                client.delete_custom(self.connection, resource, observed)
        return ActorReport("", is_withdrawn=True)

    def _by_annotation(self, actor: AnnotationActor, resource: Resource[CustomSeen]) -> ActorReport:
        node = client.get_node(self.connection, self.case.node_name)
        named = actor.host_of(node.spec.provider_id or "")
        if named is None:
            return ActorReport(f"The providerID of the node names no {resource.title}.", RepairAnswer.REFUSED)
        namespace, name = named
        host = client.get_custom(self.connection, resource, name, namespace)
        wanted, has = actor.value(self._task()), host.annotations.get(actor.annotation)
        if self.repair.ended_at is not None:
            if has == wanted:
                self.repair.keep_lease(now=self.clock())
                patch = client.metadata_patch(host, annotations={actor.annotation: None})
                client.patch_custom(self.connection, resource, name, patch, namespace)
            return ActorReport("", is_withdrawn=True)
        if has is not None and has != wanted:
            return ActorReport(f"Another client asks {resource.title} {namespace}/{name} for a reboot already.")
        if has is None and self.repair.sent_at is not None:
            has_it = self.repair.accepted_at is not None
            says = f"{resource.title} {namespace}/{name} has no request any more. The node has not booted yet."
            return ActorReport(says if has_it else ANNOTATION_UNCLEAR, is_accepted=has_it)
        if has is None:
            if unsent := self._why_unsent():
                return unsent
            self._intend()
            patch = client.metadata_patch(host, annotations={actor.annotation: wanted})
            client.patch_custom(self.connection, resource, name, patch, namespace)
        return ActorReport("", is_accepted=True)

    def _by_http(self, actor: HttpActor) -> ActorReport:
        if self.repair.sent_at is not None:
            if self.repair.accepted_at is not None:
                return ActorReport("", is_accepted=True)
            says = self.repair.says  # of an earlier round that was not the one that sent it, too
            return ActorReport(says if says.startswith(UNCLEAR) else UNCLEAR)
        receiver = receiver_of(self.case)
        if receiver is None:
            return ActorReport("The receiver was removed. Set another one, or answer the repair in its case.")
        try:
            secret = REPAIR_SECRETS.secret_at(receiver.secret_from, self.case.cluster.name)
            body = json.dumps(actor.body(self._task()), separators=(",", ":")).encode()
            headers = signed_headers(secret, self.repair.request, body, now=self.clock())
        except (NoSecret, BadSigningSecret) as error:
            return ActorReport(str(error))
        if unsent := self._why_unsent():
            return unsent
        self._intend()
        try:
            answer = post_to(receiver.address, body, headers, secret=secret, ca_file=receiver.ca_file)
        except AnswerLost as error:
            return ActorReport(f"{UNCLEAR} {error}")
        except Unusable as error:
            return ActorReport(f"The receiver was not reached. {error}", RepairAnswer.REFUSED)
        return actor.outcome(answer.status, words_of(answer.body))

    def _why_unsent(self) -> ActorReport | None:
        """Returns the report of a request that is not sent now. None: it may be sent.

        :raises ClusterError: when the cluster does not answer
        """
        if reason := self._why_wait():
            return ActorReport(reason)
        if self.not_looked and self.repair.asked_by == ACTOR:  # unknown work of others is not "no work"
            return ActorReport(f"Not sent: {self.not_looked} A person decides.", RepairAnswer.REFUSED)
        return None

    def _why_wait(self) -> str:
        """Returns why nothing may be written now, from the cluster itself. Blank: it may.

        :raises ClusterError: when the cluster does not answer
        """
        if stopped := stopped_by_switch(self.case.cluster, self.connection):
            return stopped
        node = client.get_node(self.connection, self.case.node_name)
        if node.uid != self.case.node_uid:
            return remade(self.case.node_name)
        if not node.is_unschedulable:
            return "The node is not cordoned any more: pods could start there. Quarantine it again."
        if self.repair.kind == RepairKind.REBOOT and node.status.node_info.boot_id != self.repair.boot_id:
            return "The node booted since the reboot was asked for. It is not asked again."
        if (at_work := node.labels.get(SENTINEL_STATE, "")) in SENTINEL_WORKS:
            return f"NVSentinel works on the node ({at_work}). Wait for it, or answer the repair in its case."
        work = look_at_work(self.connection)
        if external := external_owner_on(node) or work.by_node.get(node.name):
            return external.sentence
        self.not_looked = " ".join(not_looked_sentences(work.not_looked))
        if (state := node.labels.get(UPGRADE_STATE, "")) not in NOT_AT_WORK:
            return (
                f"The GPU Operator changes the node's driver ({state}). Wait for it, or answer the repair in its case."
            )
        return self._why_not_now() or collect_logs(self.repair, now=self.clock())

    def _why_not_now(self) -> str:
        now = self.clock()
        frozen = freezes_of(self.case.cluster_id, [self.case.node_uid], now=now)
        return stop_reason(now=now) or frozen.get(self.case.node_uid, "") or other_owner(self.case.node_uid, now=now)

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
            if self.not_looked:
                given: dict[str, Any] = {"actor": self.repair.asked_by, "evidence": {"repair": self.repair.pk}}
                self.case.record(NOT_LOOKED, reason=self.not_looked, now=now, **given)

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
            gpu_uuids=self._gpu_uuids(),
            answer_to=f"{settings.PUBLIC_URL.rstrip('/')}{path}" if settings.PUBLIC_URL else "",
        )

    def _gpu_uuids(self) -> tuple[str, ...]:
        """Returns the GPU of the fault; without one, every GPU of the node by its UUID."""
        if self.case.finding and self.case.finding.gpu_uuid:
            return (self.case.finding.gpu_uuid,)
        gpus = Gpu.objects.filter(node__uid=self.case.node_uid).exclude(uuid="").order_by("index")
        return tuple(gpus.values_list("uuid", flat=True))


def _status_of(observed: CustomSeen) -> ObjectStatus:
    conditions = {
        each.type: ObjectCondition(each.status, each.reason or "", each.message or "")
        for each in observed.status.conditions or ()
    }
    return ObjectStatus(conditions, is_completed=bool(observed.status.completion_time))

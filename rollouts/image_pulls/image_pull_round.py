"""One round of an image pull: read its Jobs, delete those with a result, create the next. Safe to stop anywhere.

The plan's rounds are not involved. Each Job has a row before it is created and is found by its name. A row is done only
when its Job and its pod were read back as deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta

import structlog
from django.db import transaction

from edges.failures import failure_sentence
from edges.transition_errors import LostRace
from kube import client
from operations.writer_lease import Forfeit
from rollouts.image_pulls import job_cleanup, job_creation, job_results
from rollouts.image_pulls.base import BY_ITSELF, PullRound
from rollouts.image_pulls.latest_pulls import PULLED_IN, pull_on_page
from rollouts.models import ImagePull, Plan

log = structlog.get_logger()

LOOK_AGAIN = timedelta(seconds=10)  # a driver's image takes a node a minute or more
IN_MOTION = timedelta(seconds=2)  # for a Job without a pod, or one being deleted
NOT_SOON = timedelta(seconds=10)
AFTER_A_BUG = timedelta(seconds=30)
GIVEN_UP_AFTER = timedelta(hours=2)


def run_pull(pull_id: int, *, owner: str, clock: Callable[[], datetime]) -> None:
    pull = ImagePull.objects.in_force().select_related("plan__cluster").filter(pk=pull_id).first()
    if pull is None or not pull.take_lease(owner=owner, now=clock()):
        return
    try:
        waiting_for, wait = _look_and_act(pull, clock=clock)
    except Exception as bug:
        reason = f"{failure_sentence(bug)} No Job is created until this is solved."
        pull.end_lease(now=clock(), next_look_at=clock() + AFTER_A_BUG, waiting_for=reason)
        raise
    now = clock()
    pull.end_lease(now=now, next_look_at=now + wait, waiting_for=waiting_for)


def _look_and_act(pull: ImagePull, *, clock: Callable[[], datetime]) -> tuple[str, timedelta]:
    cluster = pull.plan.cluster
    try:
        with closing(client.connect(cluster.kubeconfig, cluster.context)) as connection:
            return _advance(PullRound(pull, connection, clock))
    except client.ClusterError as error:
        log.warning("an image pull does not go on", pull=pull.pk, cluster=cluster.name, error=str(error))
        wait = timedelta(seconds=error.retry_after_s or NOT_SOON.total_seconds())
        return f"{cluster.name}: {error}", wait
    except Forfeit as forfeit:
        return str(forfeit), NOT_SOON
    except LostRace as lost:
        return str(lost), IN_MOTION


def _advance(pull_round: PullRound) -> tuple[str, timedelta]:
    _check_cluster(pull_round)
    _end_obsolete_pull(pull_round)
    job_results.observe_pull_jobs(pull_round)
    pull_round.learn_whether_it_ends()
    for row in pull_round.rows().in_the_cluster().filter(outcome=""):
        job_results.record_job_progress(pull_round, row)
    pull_round.learn_whether_it_ends()
    waiting_for = "" if pull_round.pull.ends_reason else job_creation.make(pull_round)
    if pull_round.pull.ends_reason:
        job_cleanup.record_unfinished_pulls(pull_round)
    for row in pull_round.rows().in_the_cluster():
        if row.outcome or pull_round.pull.ends_reason:
            waiting_for = job_cleanup.delete(pull_round, row) or waiting_for
    _end_pull(pull_round)
    return waiting_for, NOT_SOON if waiting_for else IN_MOTION if pull_round.is_in_motion else LOOK_AGAIN


def _check_cluster(pull_round: PullRound) -> None:
    """Checks that the cluster is the right one, so that missing Jobs are not taken for deleted ones (Z10).

    :raises Forfeit: when it is another cluster
    """
    cluster = pull_round.pull.plan.cluster
    if (uid := client.kube_system_uid(pull_round.connection)) != cluster.uid:
        raise Forfeit(f"Another cluster now answers at the address of {cluster.name} (kube-system {uid}).")


def _end_obsolete_pull(pull_round: PullRound) -> None:
    plan, now = Plan.objects.get(pk=pull_round.pull.plan_id), pull_round.clock()
    reason = ""
    if plan.state not in PULLED_IN:
        reason = f"The plan is {plan.state.replace('-', ' ')} and no longer needs its image."
    elif plan.to_version != pull_round.pull.to_version:
        reason = f"The draft was edited. Its target is now {plan.to_version}."
    elif now - pull_round.pull.asked_at >= GIVEN_UP_AFTER:
        reason = "The pull was ended after two hours."
    if reason:
        pull_round.pull.stop(reason, by=BY_ITSELF, now=now)


def _end_pull(pull_round: PullRound) -> None:
    rows = list(pull_round.rows())
    if any(row.intended_at and not row.gone_at for row in rows):
        return
    if not pull_round.pull.ends_reason and any(not row.outcome for row in rows):
        return
    now = pull_round.clock()
    with transaction.atomic():
        if pull_round.pull.end(now=now):
            pull_round.pull.refresh_from_db()
            pull_round.tell("pull-ended", pull_on_page(pull_round.pull).sentence, now=now)

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from fleet.models import Cluster
from kube import client
from tests.api_server import ApiServer
from tests.make import NOON, a_bookmark, a_cluster

pytestmark = pytest.mark.django_db


def reached_by(api: ApiServer):
    uid = client.kube_system_uid(client.connect(api.kubeconfig, api.context))
    return a_cluster("north", seen_at=None, uid=uid, kubeconfig=api.kubeconfig, context=api.context)


def test_all_is_well_where_a_cluster_answers_and_was_heard(api, capsys):
    cluster = reached_by(api)
    a_bookmark(cluster, "nodes", last_seen_at=timezone.now())
    a_bookmark(cluster, "nvidiadrivers.nvidia.com", state="absent", last_seen_at=None)
    a_bookmark(cluster, "configmaps:autoscaler", state="forbidden", last_seen_at=None)

    call_command("doctor")

    said = capsys.readouterr().out
    assert "nodes observed 0 s ago" in said
    assert "WRONG" not in said


def test_what_was_heard_by_a_clock_that_is_ahead_was_heard_just_now(api, capsys):
    a_bookmark(reached_by(api), "nodes", last_seen_at=timezone.now() + timedelta(seconds=20))

    call_command("doctor")

    assert "nodes observed 0 s ago" in capsys.readouterr().out


@pytest.mark.parametrize("state", ["forbidden", "failing"])
def test_what_was_heard_a_moment_ago_and_is_read_no_more_is_not_well(api, capsys, state):
    a_bookmark(reached_by(api), "pods", last_seen_at=timezone.now(), state=state, message="It says why.")

    with pytest.raises(SystemExit):
        call_command("doctor")

    said = capsys.readouterr().out
    assert f"WRONG  pods: {state}, last observed" in said
    assert "It says why." in said


def test_says_what_was_not_heard_for_long_and_who_does_not_answer(capsys):
    a_cluster("north", seen_at=NOON - timedelta(days=365), kubeconfig="/no/such/file")

    with pytest.raises(SystemExit):
        call_command("doctor")

    said = capsys.readouterr().out
    assert "The file /no/such/file does not exist" in said
    assert "nodes: watching, last observed 2025-11-21T12:00:00+00:00." in said


def test_says_that_another_cluster_answers(api, capsys):
    reached_by(api)
    Cluster.objects.update(uid="the-one-we-know")

    with pytest.raises(SystemExit):
        call_command("doctor")

    assert "Another cluster answers: its kube-system has the UID" in capsys.readouterr().out


def test_looks_at_the_clusters_that_are_named(api, capsys):
    a_cluster("south", seen_at=NOON, kubeconfig="/no/such/file")
    a_bookmark(reached_by(api), "nodes", last_seen_at=timezone.now())

    call_command("doctor", "north")

    assert "south" not in capsys.readouterr().out
    with pytest.raises(CommandError, match="Unknown cluster: nowhere"):
        call_command("doctor", "nowhere")

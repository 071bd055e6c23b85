"""The state of a pod, in Python and as the database computes it."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.models import Node, Pod
from fleet.states.pod import CODES, TITLES, PodState, is_refusal
from tests import make
from tests.make import NOON

CASES = st.fixed_dictionaries(
    {
        "phase": st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown", ""]),
        "status": st.sampled_from(["Running", "OutOfnvidia.com/gpu", "UnexpectedAdmissionError", "Evicted", "outofx"]),
        "node_name": st.sampled_from(["", "somewhere"]),
        "is_ready": st.booleans(),
        "deleted_at": st.sampled_from([None, NOON]),
        "stuck_container": st.sampled_from(["", "main"]),
        "waiting_reason": st.sampled_from(["", "CrashLoopBackOff"]),
        "restarts": st.integers(0, 5),
        "crashed_at": st.sampled_from([None, NOON - timedelta(minutes=3), NOON - timedelta(hours=3)]),
    }
)


def test_every_state_has_a_title_and_a_code():
    assert set(TITLES) == set(CODES) == set(PodState)


@pytest.mark.parametrize(
    ("status", "expected"),
    [("UnexpectedAdmissionError", True), ("OutOfnvidia.com/gpu", True), ("Evicted", False), ("Error", False)],
)
def test_a_kubelets_refusal_is_no_failure_of_the_program(status, expected):
    assert is_refusal(status) is expected


@pytest.mark.sqlite
@pytest.mark.django_db
@given(rows=st.lists(st.tuples(CASES, st.booleans()), max_size=12))
def test_the_database_computes_the_same_state(rows):
    Pod.objects.all().delete()
    Node.objects.all().delete()
    cluster = make.a_cluster()
    silent, loud = make.a_node(cluster, "silent", is_ready=None, gpus=0), make.a_node(cluster, "loud", gpus=0)
    plain = {"namespace": "a", "created_at": NOON, "changed_at": NOON}
    Pod.objects.bulk_create(
        Pod(cluster=cluster, node=silent if is_silent else loud, uid=number, name=number, **plain, **case)
        for number, (case, is_silent) in enumerate(rows)
    )

    shown = Pod.objects.with_state(now=NOON, silent_nodes=[silent.pk]).values_list("name", "shown_state")

    assert dict(shown) == {pod.name: CODES[pod.state(now=NOON)] for pod in Pod.objects.select_related("node")}

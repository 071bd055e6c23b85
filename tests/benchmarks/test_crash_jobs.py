"""What the bench of crashes finds of Jobs, and what it does not take for a fault."""

from benchmarks.crashing import job_reading
from benchmarks.crashing.job_reading import JobReading
from benchmarks.crashing.jobs import NAMESPACE, Jobs
from simulator import kinds
from simulator.kinds import JOB, POD
from simulator.store import Store

JOBS = "/apis/batch/v1/namespaces/gpu-operator/jobs"
NAME, NOON = "quarterdeck-test-1", "2026-11-21T12:00:00+00:00"
OURS = {"labels": {"quarterdeck.io/proves-for": "operation-1"}, "annotations": {"quarterdeck.io/asked-at": NOON}}


def made(*, ours: bool = True) -> tuple[dict, bool]:
    body = {"metadata": {"name": NAME} | (OURS if ours else {})}
    return {"method": "POST", "path": JOBS, "body": body, "at": NOON}, ours


def deleted(*, ours: bool = True) -> tuple[dict, bool]:
    return {"method": "DELETE", "path": f"{JOBS}/{NAME}", "body": None, "at": NOON}, ours


def found(*entries: tuple[dict, bool], is_late: bool = False) -> list[str]:
    reading = JobReading()
    return [one.figure for entry, ours in entries for one in reading.take(entry, is_ours=ours, is_late=is_late)]


def test_a_job_that_is_made_and_deleted_is_nothing():
    assert found(made(), deleted()) == []


def test_a_second_job_of_one_row_is_found_unless_somebody_deleted_the_first():
    assert found(made(), deleted(), made()) == ["leaked_jobs"]
    assert found(made(), deleted(ours=False), made()) == []
    assert found(made(), deleted(), made(), is_late=True) == []  # nobody calls back what was sent before


def test_somebody_elses_job_is_not_deleted():
    assert found(made(), deleted(ours=False), made(ours=False), deleted()) == ["leaked_jobs"]


def test_what_is_left_is_found_and_what_is_not_ours_or_landed_late_is_left():
    def job(metadata: dict, at: str) -> dict:
        return {"metadata": {"name": NAME, "creationTimestamp": at} | metadata}

    there = [job(OURS, NOON), job({}, NOON), job(OURS, "2026-11-21T12:02:00+00:00")]
    assert [one.figure for one in job_reading.test_jobs_at_the_end(there)] == ["leaked_jobs"]


def test_the_pod_of_somebody_elses_job_is_put_on_no_node():
    store = Store()
    store.create(kinds.NAMESPACE, {"metadata": {"name": NAMESPACE}})
    theirs = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    template = {"template": {"metadata": {}, "spec": theirs}}
    store.create(JOB, {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": template}, NAMESPACE)
    Jobs(store).step()
    (pod,) = store.list(POD, NAMESPACE)[0]
    assert "nodeName" not in pod["spec"]

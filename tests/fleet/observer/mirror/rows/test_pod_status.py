"""The column STATUS, case by case of printPod (pkg/printers/internalversion/printers_test.go, TestPrintPod)."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.observer.mirror.rows.pod import pod_row
from fleet.observer.mirror.rows.pod_status import AT_MOST
from tests.fleet.documents import a_pod_seen

RUNNING = {"state": {"running": {"startedAt": "2026-11-21T08:00:00Z"}}, "ready": True}
DONE = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
CRASHED = {"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}, "restartCount": 188}
PULLING = {"state": {"waiting": {"reason": "ImagePullBackOff"}}}
KILLED = {"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
SIGNALLED = {"state": {"terminated": {"exitCode": 139, "signal": 11}}}
ENDED = {"state": {"terminated": {"exitCode": 3}}}
WAITS = {"state": {"waiting": {"reason": "PodInitializing"}}}
INITIALIZED = {"type": "Initialized", "status": "True"}
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}


def a_pod(*statuses, inits=(), sidecars=(), gone=False, reason="", **given):
    named = [{"name": f"c{index}", **status} for index, status in enumerate(statuses)]
    seen = a_pod_seen(statuses=named, init_containers=[{"name": f"i{n}"} for n, _ in enumerate(inits)], **given)
    document = msgspec.to_builtins(seen)
    document["status"]["initContainerStatuses"] = [{"name": f"i{n}", **status} for n, status in enumerate(inits)]
    for number in sidecars:
        document["spec"]["initContainers"][number]["restartPolicy"] = "Always"
    document["status"]["reason"] = reason
    if gone:
        document["metadata"]["deletionTimestamp"] = "2026-11-21T09:00:00Z"
    return msgspec.convert(document, type(seen), strict=False)


@pytest.mark.parametrize(
    ("seen", "status"),
    [
        (a_pod(RUNNING), "Running"),
        (a_pod(CRASHED), "CrashLoopBackOff"),
        (a_pod(RUNNING, CRASHED), "CrashLoopBackOff"),
        (a_pod(PULLING, phase="Pending"), "ImagePullBackOff"),
        (a_pod({"state": {"waiting": {"reason": "ContainerCreating"}}}, phase="Pending"), "ContainerCreating"),
        (a_pod(KILLED), "OOMKilled"),
        (a_pod(SIGNALLED), "Signal:11"),
        (a_pod(ENDED), "ExitCode:3"),
        (a_pod(DONE, phase="Succeeded"), "Completed"),
        (a_pod(DONE, RUNNING), "Running"),
        (a_pod(DONE, RUNNING, ready="False"), "NotReady"),
        (a_pod(phase="Pending"), "Pending"),
        (a_pod(phase="Pending", conditions=[GATED]), "SchedulingGated"),
        (a_pod(phase="Failed", reason="Evicted"), "Evicted"),
        (a_pod(phase="Failed", reason="UnexpectedAdmissionError"), "UnexpectedAdmissionError"),
        (a_pod(WAITS, inits=(DONE, RUNNING | {"ready": False}), phase="Pending"), "Init:1/2"),
        (a_pod(WAITS, inits=(CRASHED,), phase="Pending"), "Init:CrashLoopBackOff"),
        (a_pod(WAITS, inits=(KILLED,), phase="Pending"), "Init:OOMKilled"),
        (a_pod(WAITS, inits=(SIGNALLED,), phase="Pending"), "Init:Signal:11"),
        (a_pod(WAITS, inits=(ENDED,), phase="Pending"), "Init:ExitCode:3"),
        (a_pod(WAITS, inits=(WAITS, WAITS), phase="Pending"), "Init:0/2"),
        (a_pod(RUNNING, inits=(RUNNING | {"started": True},), sidecars=(0,)), "Running"),
        (a_pod(WAITS, inits=(RUNNING | {"started": False},), sidecars=(0,), phase="Pending"), "Init:0/1"),
        (a_pod(RUNNING, inits=(CRASHED,), sidecars=(0,), conditions=[INITIALIZED]), "Init:CrashLoopBackOff"),
        (a_pod(CRASHED, inits=(CRASHED,), sidecars=(0,), conditions=[INITIALIZED]), "CrashLoopBackOff"),
        (a_pod(RUNNING, gone=True), "Terminating"),
        (a_pod(CRASHED, gone=True), "Terminating"),
        (a_pod(RUNNING, gone=True, reason="NodeLost"), "Unknown"),
        (a_pod(DONE, phase="Succeeded", gone=True), "Completed"),
    ],
)
def test_a_pods_status_is_what_kubectl_says(seen, status):
    assert pod_row(seen)["status"] == status


def test_restarts_of_init_containers_count_only_while_they_are_at_work():
    once = {"restartCount": 1}

    assert pod_row(a_pod(RUNNING | {"restartCount": 4}, inits=(DONE | once,)))["restarts"] == 4
    assert pod_row(a_pod(WAITS, inits=(DONE | once, CRASHED), phase="Pending"))["restarts"] == 189


def test_restarts_of_a_sidecar_count_with_those_of_the_rest():
    sidecar = RUNNING | {"started": True, "restartCount": 2}

    assert pod_row(a_pod(RUNNING | {"restartCount": 3}, inits=(sidecar,), sidecars=(0,)))["restarts"] == 5


def test_the_last_crash_is_the_latest_of_all_its_containers():
    def ended(hour: int, code: int = 1):
        return {"terminated": {"exitCode": code, "finishedAt": f"2026-11-21T{hour:02}:00:00Z"}}

    crashed = RUNNING | {"lastState": ended(9)}
    seen = a_pod(crashed, RUNNING | {"lastState": ended(11, code=0)}, inits=({"state": ended(8)},))

    assert pod_row(seen)["crashed_at"].hour == 9
    assert pod_row(a_pod(RUNNING))["crashed_at"] is None


STATE = st.fixed_dictionaries(
    {},
    optional={
        "running": st.just({}),
        "waiting": st.fixed_dictionaries({}, optional={"reason": st.sampled_from(["", "CrashLoopBackOff", "x" * 300])}),
        "terminated": st.fixed_dictionaries(
            {"exitCode": st.integers(-1, 300)}, optional={"signal": st.integers(0, 64)}
        ),
    },
)
STATUS = st.fixed_dictionaries(
    {"ready": st.booleans()},
    optional={"state": STATE, "started": st.booleans(), "restartCount": st.integers(-5, 2**40)},
)


@given(
    statuses=st.lists(STATUS, max_size=3),
    inits=st.lists(STATUS, max_size=3),
    phase=st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed", "Unknown", "Odd"]),
    gone=st.booleans(),
)
def test_every_pod_with_a_phase_has_a_status(statuses, inits, phase, gone):
    row = pod_row(a_pod(*statuses, inits=tuple(inits), phase=phase, gone=gone))

    assert bool(row["status"]) or not phase
    assert len(row["status"]) <= AT_MOST
    assert 0 <= row["restarts"] < 2**31


def test_the_last_words_of_a_container_are_kept_without_secrets():
    """A termination message may be the end of its log (terminationMessagePolicy: FallbackToLogsOnError)."""
    ended = {
        "exitCode": 1,
        "reason": "Error",
        "message": "\x1b[31mError: cannot reach s3, secret_access_key=AKIAverysecret1\x1b[0m",
    }
    crashed = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": ended}}

    row = pod_row(a_pod(crashed))

    assert row["last_words"] == "Error: cannot reach s3, secret_access_key=[redacted]"
    assert row["more_words"] == ""


@pytest.mark.parametrize(
    ("now", "before", "kept"),
    [
        ("Loading weights", "RuntimeError: CUDA error: out of memory", "RuntimeError: CUDA error: out of memory"),
        ("Loading weights", "Starting", "Loading weights"),
        ("", "Starting", "Starting"),
        ("RuntimeError: no GPU", "OSError: disk", "RuntimeError: no GPU"),
    ],
)
def test_an_earlier_end_that_names_an_error_tells_more_than_a_plain_last_line(now, before, kept):
    ended, earlier = ({"terminated": {"exitCode": 1, "reason": "Error", "message": text}} for text in (now, before))
    seen = a_pod({"state": ended, "lastState": earlier, "restartCount": 2})

    assert pod_row(seen)["last_words"] == kept


def test_a_long_further_line_is_whole_where_others_leave_room():
    told = (
        "E0912 02:00:56.166591 1 logging.cc:40] 1: [stdArchiveReader.cpp::StdArchiveReaderInitCommon::46] "
        "Error Code 1: Serialization (Serialization assertion stdVersionRead == serializationVersion failed.Version "
        "tag does not match. Note: Current Version: 236, Serialized Engine Version: 239)"
    )
    last = "E0912 02:00:56.167417 1 model_lifecycle.cc:630] failed to load 'det' version 1: Internal: unable to load"
    lines = {"exitCode": 1, "reason": "Error", "message": f"{told}\nI0912 02:00:56.167397 1 x.cc:274] delete\n{last}"}
    crashed = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": lines}}

    row = pod_row(a_pod(crashed))

    assert row["last_words"] == last
    assert row["more_words"] == told


def test_further_lines_share_their_room():
    lines = "\n".join(f"Error: {letter * 900} failed" for letter in "abcde")
    ended = {"exitCode": 1, "reason": "Error", "message": lines}
    crashed = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": ended}}

    more = pod_row(a_pod(crashed))["more_words"]

    assert len(more) <= 700
    assert [len(line) > 160 for line in more.split("\n")] == [True] * 4

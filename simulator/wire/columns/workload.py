from datetime import datetime
from typing import Any

from simulator.wire.ages import human, parsed
from simulator.wire.columns.column import AGE, NAME, Column, reading, selector_text

Obj = dict[str, Any]


def _containers(member: str) -> Any:
    def cell(obj: Obj, _now: datetime) -> str:
        return ",".join(container.get(member, "") for container in obj["spec"]["template"]["spec"]["containers"])

    return cell


def _selector(obj: Obj, _now: datetime) -> str:
    return selector_text((obj["spec"].get("selector") or {}).get("matchLabels"))


WIDE = (
    Column("Containers", _containers("name"), priority=1),
    Column("Images", _containers("image"), priority=1),
    Column("Selector", _selector, priority=1),
)


def _number(name: str, path: str) -> Column:
    return Column(name, reading(path, 0), type="integer")


def _of(done: str, wanted: str) -> Any:
    read_done, read_wanted = reading(done, 0), reading(wanted, 0)
    return lambda obj, now: f"{read_done(obj, now)}/{read_wanted(obj, now)}"


def _job_status(job: Obj, _now: datetime) -> str:
    true = {condition["type"] for condition in job["status"].get("conditions") or () if condition["status"] == "True"}
    for condition, word in (("Complete", "Complete"), ("Failed", "Failed")):
        if condition in true:
            return word
    if "deletionTimestamp" in job["metadata"]:
        return "Terminating"
    for condition in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if condition in true:
            return condition
    return "Running"


def _completions(job: Obj, _now: datetime) -> str:
    done, spec = job["status"].get("succeeded", 0), job["spec"]
    if "completions" in spec:
        return f"{done}/{spec['completions']}"
    parallelism = spec.get("parallelism", 1)
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(job: Obj, now: datetime) -> str:
    status = job["status"]
    if "startTime" not in status:
        return ""
    ended = parsed(status["completionTime"]) if "completionTime" in status else now
    return human(ended - parsed(status["startTime"]))


def _node_selector(daemon_set: Obj, _now: datetime) -> str:
    return selector_text(daemon_set["spec"]["template"]["spec"].get("nodeSelector"))


DAEMON_SET_COLUMNS = (
    NAME,
    _number("Desired", "status.desiredNumberScheduled"),
    _number("Current", "status.currentNumberScheduled"),
    _number("Ready", "status.numberReady"),
    _number("Up-to-date", "status.updatedNumberScheduled"),
    _number("Available", "status.numberAvailable"),
    Column("Node Selector", _node_selector),
    AGE,
    *WIDE,
)
REPLICA_SET_COLUMNS = (
    NAME,
    _number("Desired", "spec.replicas"),
    _number("Current", "status.replicas"),
    _number("Ready", "status.readyReplicas"),
    AGE,
    *WIDE,
)
DEPLOYMENT_COLUMNS = (
    NAME,
    Column("Ready", _of("status.readyReplicas", "spec.replicas")),
    _number("Up-to-date", "status.updatedReplicas"),
    _number("Available", "status.availableReplicas"),
    AGE,
    *WIDE,
)
STATEFUL_SET_COLUMNS = (NAME, Column("Ready", _of("status.readyReplicas", "spec.replicas")), AGE, *WIDE[:2])
JOB_COLUMNS = (
    NAME,
    Column("Status", _job_status),
    Column("Completions", _completions),
    Column("Duration", _job_duration),
    AGE,
    *WIDE,
)
BUDGET_COLUMNS = (
    NAME,
    Column("Min Available", reading("spec.minAvailable", "N/A")),
    Column("Max Unavailable", reading("spec.maxUnavailable", "N/A")),
    _number("Allowed Disruptions", "status.disruptionsAllowed"),
    AGE,
)

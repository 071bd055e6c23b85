"""One pod on its node as the kubelet knows it, and the status that says so."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

from simulator.actors.objects import Obj, condition, status, uid
from simulator.clock import stamp


class Stage(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


@dataclass
class Container:
    name: str
    image: str
    stage: Stage = Stage.WAITING
    reason: str = "PodInitializing"
    message: str = ""
    is_ready: bool = False
    restarts: int = 0
    started_at: str = ""
    finished_at: str = ""
    exit_code: int = 0
    last: dict[str, Any] = field(default_factory=dict)

    def start(self, at: str) -> None:
        self.stage, self.started_at, self.reason, self.message = Stage.RUNNING, at, "", ""

    def end(self, at: str, exit_code: int, reason: str) -> None:
        self.stage, self.finished_at, self.exit_code, self.reason = Stage.TERMINATED, at, exit_code, reason
        self.is_ready = False

    def back_off(self, backoff_s: float, pod: str) -> None:
        """CrashLoopBackOff: what ended becomes lastState."""
        self.last = {"terminated": self._terminated()}
        self.stage, self.reason, self.is_ready = Stage.WAITING, "CrashLoopBackOff", False
        self.message = f"back-off {round(backoff_s)}s restarting failed container={self.name} pod={pod}"

    def restart(self, at: str) -> None:
        self.restarts += 1
        self.start(at)

    def _terminated(self) -> Obj:
        return {
            "exitCode": self.exit_code,
            "reason": self.reason,
            "startedAt": self.started_at,
            "finishedAt": self.finished_at,
            "containerID": self.container_id,
        }

    @property
    def container_id(self) -> str:
        return f"containerd://{sha256(f'{self.name}{self.image}{self.started_at}{self.restarts}'.encode()).hexdigest()}"

    def report(self, *, is_init: bool) -> Obj:
        state: Obj
        if self.stage is Stage.RUNNING:
            state = {"running": {"startedAt": self.started_at}}
        elif self.stage is Stage.TERMINATED:
            state = {"terminated": self._terminated()}
        else:
            state = {"waiting": {"reason": self.reason} | ({"message": self.message} if self.message else {})}
        report: Obj = {
            "name": self.name,
            "image": self.image,
            "imageID": f"{self.image.partition(':')[0]}@sha256:{sha256(self.image.encode()).hexdigest()}",
            "ready": self.stage is Stage.TERMINATED and self.exit_code == 0 if is_init else self.is_ready,
            "started": self.stage is Stage.RUNNING and (self.is_ready or is_init),
            "restartCount": self.restarts,
            "state": state,
            "lastState": self.last,
        }
        if self.started_at:
            report["containerID"] = self.container_id
        return report


class Sandbox:
    def __init__(self, pod: Obj, *, host_ip: str, pod_ip: str) -> None:
        self.uid = uid(pod)
        self.host_ip, self.pod_ip = host_ip, pod_ip
        self.inits = [
            _container(each, pod, "initContainerStatuses") for each in pod["spec"].get("initContainers") or ()
        ]
        self.containers = [_container(each, pod, "containerStatuses") for each in pod["spec"]["containers"]]
        if not self.inits:
            for container in self.containers:
                container.reason = "ContainerCreating"
        self.phase = "Pending"
        self.started_at = ""
        self._conditions = {each["type"]: each for each in status(pod).get("conditions") or ()}

    @classmethod
    def running(cls, pod: Obj, *, host_ip: str, pod_ip: str, at: str) -> "Sandbox":
        """As if everything in it had started well at `at`."""
        box = cls(pod, host_ip=host_ip, pod_ip=pod_ip)
        box.started_at, box.phase = at, "Running"
        for container in box.inits:
            container.start(at)
            container.end(at, 0, "Completed")
        for container in box.containers:
            if container.stage is not Stage.RUNNING:
                container.start(at)
            container.is_ready = True
        return box

    @property
    def is_ready(self) -> bool:
        return self.phase == "Running" and all(container.is_ready for container in self.containers)

    def report(self, now: datetime) -> Obj:
        """The whole status, as the kubelet patches it."""
        at = stamp(now)
        is_initialized = all(each.stage is Stage.TERMINATED and each.exit_code == 0 for each in self.inits)
        unready = [container.name for container in self.containers if not container.is_ready]
        why = {} if not unready else _not_ready(unready)
        conditions = [
            self._condition("PodReadyToStartContainers", is_true=bool(self.started_at), at=at),
            self._condition("Initialized", is_true=is_initialized, at=at),
            self._condition("Ready", is_true=self.is_ready, at=at, **why),
            self._condition("ContainersReady", is_true=self.is_ready, at=at, **why),
            self._conditions.get("PodScheduled") or self._condition("PodScheduled", is_true=True, at=at),
        ]
        report: Obj = {
            "phase": self.phase,
            "conditions": conditions,
            "hostIP": self.host_ip,
            "hostIPs": [{"ip": self.host_ip}],
            "startTime": self.started_at or at,
            "containerStatuses": [container.report(is_init=False) for container in self.containers],
        }
        if self.started_at:
            report |= {"podIP": self.pod_ip, "podIPs": [{"ip": self.pod_ip}]}
        if self.inits:
            report["initContainerStatuses"] = [container.report(is_init=True) for container in self.inits]
        return report

    def _condition(self, type_: str, *, is_true: bool, at: str, reason: str = "", message: str = "") -> Obj:
        value = "True" if is_true else "False"
        was = self._conditions.get(type_)
        since = was["lastTransitionTime"] if was and was["status"] == value else at
        made: Obj = {"type": type_, "status": value, "lastProbeTime": None, "lastTransitionTime": since}
        if reason:
            made |= {"reason": reason, "message": message}
        self._conditions[type_] = made
        return made


def rejected(pod: Obj, reason: str, message: str, now: datetime) -> Obj:
    """The status of a pod that the kubelet did not admit."""
    return {
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": stamp(now),
        "conditions": [condition(pod, "PodScheduled")] if condition(pod, "PodScheduled") else [],
    }


def _not_ready(unready: list[str]) -> dict[str, str]:
    listed = " ".join(unready)
    return {"reason": "ContainersNotReady", "message": f"containers with unready status: [{listed}]"}


def _container(spec: Obj, pod: Obj, where: str) -> Container:
    made = Container(spec["name"], spec["image"])
    was = next((each for each in status(pod).get(where) or () if each["name"] == made.name), None)
    if was:
        made.restarts, made.last = was.get("restartCount", 0), was.get("lastState") or {}
        running = (was.get("state") or {}).get("running")
        if running:
            made.start(running["startedAt"])
            made.is_ready = bool(was.get("ready"))
    return made

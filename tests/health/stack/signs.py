"""Signs of one operand on one node; a test names only what it is about."""

from typing import Any

from health.stack.causes import Event, PodSigns, Signs

GATE = "nvidia.com/gpu.deploy.device-plugin"


def signs(operand: str = "device-plugin", pod: PodSigns | None = None, **given: Any) -> Signs:
    gate = f"nvidia.com/gpu.deploy.{operand}"
    row = {
        "title": operand.replace("-", " ").capitalize(),
        "node": "gpu-1",
        "labels": {"nvidia.com/gpu.present": "true", gate: "true"},
        "selector": {gate: "true"},
        "kernel": "6.8.0-60-generic",
        "os_image": "Ubuntu 24.04.2 LTS",
        "runtime": "containerd://1.7.24",
    }
    return Signs(operand=operand, pod=pod, **row | given)


def a_pod(**given: Any) -> PodSigns:
    return PodSigns(**{"name": "gpu-operator/p", "phase": "Running"} | given)


def an_event(message: str, reason: str = "FailedCreatePodSandBox") -> Event:
    return Event(reason, message)


def crashing(*log: str, **given: Any) -> PodSigns:
    crash = {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}
    return a_pod(log=log, **crash | given)

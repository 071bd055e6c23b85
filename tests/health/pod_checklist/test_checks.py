"""The checks of a GPU pod: yes, no with cause and fix, or unknown with the reason."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fleet.models import ClusterEvent, Node, Pod
from health.pod_checklist.checks import CHECKS, check_pod
from health.pod_checklist.facts import CountedXids, GpuFault, PodCheckFacts, PodGpu
from health.stack import NodeStack
from health.stack.causes import Cause, Weight
from health.stack.driver_versions import driver_versions
from health.stack.node_operands import operands_on
from tests.health.stack.test_on_node import DEPLOY, a_daemon_set, a_pod, rows
from tests.make import NOON

LABELS = {"nvidia.com/gpu.present": "true", f"{DEPLOY}device-plugin": "true"}
GPU = PodGpu(
    "GPU 3", "GPU-aa", memory_used_mib=61_440.0, memory_mib=81_920, xids=CountedXids(0, None, 1.0), ecc_uncorrected=0.0
)
SHARED = replace(GPU, neighbours=("team-b/other (1 GPU)",))


def facts(pod=None, node=None, plugin=None, **given) -> PodCheckFacts:
    there = {
        "namespace": "team-a", "name": "train", "node_name": "gpu-1", "phase": "Running", "is_ready": True,
        "created_at": NOON - timedelta(hours=3), "started_at": NOON - timedelta(hours=3), "gpus": 1,
        "ready_since": NOON - timedelta(hours=2), "resources": {"nvidia.com/gpu": 1},
        "image": "nvidia/cuda:12.8.1-base",
    } | (pod or {})  # fmt: skip
    columns = {
        "name": "gpu-1", "labels": LABELS, "is_ready": True, "is_gpu_node": True, "gpu_product": "NVIDIA-H100",
        "allocatable": {"nvidia.com/gpu": 8},
    } | (node or {})  # fmt: skip
    reported = columns.pop("reported_driver", "570.172.08")
    row = Node(**columns)
    row.__dict__["reported_driver"] = reported
    found = operands_on(row, rows([a_daemon_set()], [a_pod(**plugin or {})]))
    stack = NodeStack(found, driver_versions(row, found, []), frozenset())
    usual = {"node": row, "stack": stack, "gpus": (GPU,), "asks": "1 GPU", "seen_at": NOON, "node_seen_at": NOON}
    return PodCheckFacts(**{"pod": Pod(**there), "now": NOON} | usual | given)


def answers(**given):
    return {item.key: item for item in check_pod(facts(**given))}


def test_a_pod_that_is_well_passes_every_check():
    items = answers()

    assert list(items) == list(CHECKS)
    assert {key: item.answer for key, item in items.items()} == dict.fromkeys(CHECKS, "yes")
    assert all(item.at is not None for item in items.values())


def a_cause(key: str, weight: Weight = Weight.WRONG) -> Cause:
    return Cause(key, weight, "It is so", "Because.", ("Do it.",))


def ended(reason: str = "Error", words: str = "", **given):
    at = (NOON - timedelta(hours=1)).isoformat()
    return {"ended": {"container": "main", "reason": reason, "exit_code": 1, "at": at, "words": words} | given}


WARNING = ClusterEvent(reason="FailedCreatePodSandBox", message="no runtime", last_at=NOON, is_warning=True)
FAULT = GpuFault("GPU 3 of gpu-1 has Xid 79", NOON, is_memory_error=False, is_xid=True)
ECC = replace(FAULT, title="GPU 3 has an ECC error", is_memory_error=True, is_xid=False)
VISIBLE = {"visible": [{"container": "main", "variable": "CUDA_VISIBLE_DEVICES", "devices": "1"}]}
BY_REFERENCE = {"visible": [{"container": "main", "variable": "CUDA_VISIBLE_DEVICES", "devices": None}]}
OOM = (
    "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 80.00 GiB of which 1.00 GiB is "
    "free. Including non-PyTorch memory, this process has 40.00 GiB memory in use."
)


@pytest.mark.parametrize(
    ("given", "key", "answer", "words", "step"),
    [
        ({"pod": {"resources": {}, "gpus": 0}}, "requests", "no", "No container requests a GPU", "limits"),
        ({"pod": {"resources": {}, "gpus": 0, "operand": "device-plugin"}}, "requests", "unknown",
         "without a request", ""),
        ({"pod": {"operand": "plugin-test"}}, "requests", "yes", "The pod requests", ""),
        ({"asks": ""}, "requests", "yes", "requests 1 nvidia.com/gpu.", ""),
        ({"pod": {"container_settings": {"without_gpus": ["proxy"]}, "stuck_container": "proxy"}}, "requests", "no",
         "Container proxy requests no GPU", "container proxy"),
        ({"pod": {"container_settings": {"without_gpus": ["proxy"]}}}, "requests", "yes", "proxy requests none", ""),
        ({"pod": {"node_name": ""}, "gpus": ()}, "node", "unknown", "no node yet", "waits"),
        ({"node": {"allocatable": {}}}, "node", "no", "offers no nvidia.com/gpu now", "checklist of gpu-1"),
        ({"node": {"is_gpu_node": False}}, "node", "no", "gpu-1 has no GPU", "node selector"),
        ({"cause": a_cause("devices_unhealthy")}, "allocation", "no", "It is so", "Do it."),
        ({"unallocated_claims": ("gpu",)}, "allocation", "no", "Not allocated: gpu", "DRA"),
        ({"missing_claims": ("gpu",)}, "allocation", "unknown", "Not observed: gpu", ""),
        ({"pod": {"started_at": None}}, "allocation", "unknown", "has not accepted the pod", ""),
        ({"gpus": ()}, "allocation", "yes", "Nothing reports which GPUs", ""),
        ({"events_gap": "Not permitted."}, "events", "unknown", "Events are not checked. Not permitted.", ""),
        ({"warnings": (WARNING,)}, "events", "no", "FailedCreatePodSandBox: no runtime", "device plugin"),
        ({"warnings": (ClusterEvent(reason="X", message="y", last_at=NOON - timedelta(hours=2, minutes=9)),)},
         "events", "yes", "came before the pod became ready", ""),
        ({"plugin": {"is_ready": False, "waiting_reason": "CrashLoopBackOff: x", "stuck_container": "p"}}, "events",
         "no", "", ""),
        ({"cause": a_cause("no_runtime_handler")}, "runtime", "no", "It is so", "Do it."),
        ({"gpus": ()}, "runtime", "unknown", "The configuration of the runtime is not checked", "nvidia-smi"),
        ({"gpus": (SHARED,)}, "runtime", "unknown", "default runtime", ""),
        ({"node": {"reported_driver": "470.57.02"}}, "cuda-version", "no", "470.57.02 is older", "older CUDA"),
        ({"node": {"reported_driver": ""}}, "cuda-version", "unknown", "Nothing reports the driver", ""),
        ({"pod": {"image": "team/serve:1"}}, "cuda-version", "unknown", "image itself is not checked", "nvidia-smi"),
        ({"pod": {"image": "x:cuda-99.1"}}, "cuda-version", "unknown", "not", ""),
        ({"node": {"gpu_vendor": "amd"}}, "cuda-version", "unknown", "Only CUDA", ""),
        ({"pod": {"container_settings": {"privileged": ["main"]}}}, "security", "no", "main is privileged", "Remove"),
        ({"pod": {"container_settings": VISIBLE}}, "environment", "no", "is not a GPU of the pod", "Remove CUDA_"),
        ({"pod": {"container_settings": BY_REFERENCE}}, "environment", "unknown", "reference", "nvidia-smi -L"),
        ({"pod": {"container_settings": VISIBLE}, "is_shared": True}, "environment", "unknown", "are unknown", ""),
        ({"gpus": (SHARED,)}, "neighbours", "no",
         "shared with team-b/other (1 GPU). Memory in use: GPU 3 60.0 of 80 GiB.", "MIG slice"),
        ({"gpus": (replace(SHARED, profile="1g.10gb"),)}, "neighbours", "yes", "MIG slices", ""),
        ({"gpus": (), "is_shared": True, "sharers": ("b/x (1 share)",)}, "neighbours", "unknown", "b/x (1 share)", ""),
        ({"gpus": ()}, "neighbours", "yes", "does not share them", ""),
        ({"pod": {"phase": "Failed"}}, "neighbours", "unknown", "has ended", ""),
        ({"gpus": (replace(GPU, xids=CountedXids(2, NOON, 1.0)),)}, "xids", "no", "at least 2 Xids", "findings"),
        ({"gpus": (replace(GPU, faults=(FAULT,)),)}, "xids", "no", "Xid 79", "findings"),
        ({"gpus": (replace(GPU, xids=CountedXids()),)}, "xids", "unknown", "not exported, or no hour", ""),
        ({"gpus": (replace(GPU, xids=CountedXids(0, None, 0.5)),)}, "xids", "unknown", "only 50%", ""),
        ({"gpus": ()}, "xids", "unknown", "Nothing reports which GPUs", ""),
        ({"telemetry_gap": "No source."}, "xids", "unknown", "No source.", ""),
        ({"gpus": (replace(GPU, ecc_uncorrected=None),)}, "memory-errors", "unknown", "not exported", "DCGM"),
        ({"gpus": (replace(GPU, ecc_uncorrected=3.0),)}, "memory-errors", "unknown", "GPU 3: 3", ""),
        ({"gpus": (replace(GPU, faults=(ECC,)),)}, "memory-errors", "no", "ECC error", ""),
        ({"pod": {"container_settings": ended("OOMKilled", memory_limit_bytes=2**31)}}, "memory", "no",
         "main was killed because it exceeded its memory limit of 2 GiB", "Raise"),
        ({"pod": {"container_settings": ended(words=OOM)}, "ended_cause": a_cause("cuda_out_of_memory")}, "memory",
         "no", "Other processes held 39.0 of 80.0 GiB. Kubernetes did not kill", "left behind"),
        ({"pod": {"container_settings": ended()}, "cause": a_cause("shared_memory")}, "memory", "no", "It is so", ""),
        ({"pod": {"phase": "Failed", "status": "Evicted"}}, "memory", "no", "evicted", "requests"),
        ({"pod": {"phase": "Failed", "status": "Evicted"}, "cause": a_cause("evicted_disk")}, "memory", "yes",
         "not for memory", ""),
        ({"pod": {"container_settings": ended()}}, "memory", "unknown", "without a termination message", "Fallback"),
        ({"pod": {"container_settings": ended(words="KeyError: 'x'")}}, "memory", "unknown", "KeyError", ""),
        ({"pod": {"container_settings": ended(words="CUDA error: out of memory")}}, "cuda-error", "no",
         "CUDA error 2 (cudaErrorMemoryAllocation). Not enough free GPU memory.", "Reduce the batch"),
        ({"pod": {"container_settings": ended(words="KeyError: 'x'")}}, "cuda-error", "unknown", "a CUDA error", ""),
    ],
)  # fmt: skip
def test_each_answer_has_its_cause_and_its_fix(given, key, answer, words, step):
    item = answers(**given)[key]

    assert (item.answer, item.sentence if words not in item.sentence else words) == (answer, words)
    assert step in " ".join(item.steps)


def test_the_time_of_an_end_is_the_time_of_its_evidence():
    item = answers(pod={"container_settings": ended("OOMKilled")})["memory"]

    assert item.at == NOON - timedelta(hours=1)

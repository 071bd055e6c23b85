"""What the Job may do, which is nothing but end."""

from kube.structs.daemonset import PodTemplate, TemplateMeta, TemplateSpec
from kube.structs.node_affinity import Toleration
from operations.test_jobs.job_manifest import is_ours
from operations.test_jobs.pull_job import PullPod, like_driver, pull_job_for
from operations.test_jobs.test_job import WantedTestJob

IMAGE = "nvcr.io/nvidia/driver:580.126.20-ubuntu22.04"
WANTED = WantedTestJob("operation-7", 3, "gpu-1", IMAGE, "", 0, "2026-01-08T12:00:00+00:00")
TAINTED = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
SPEC = {"serviceAccountName": "nvidia-driver", "imagePullSecrets": [{"name": "ngc"}]}


def like(spec: dict | None = None, **labels: str) -> PullPod:
    template = PodTemplate(TemplateMeta(labels=labels), TemplateSpec(tolerations=[Toleration(**TAINTED)]))
    return like_driver(template, SPEC if spec is None else spec)


def job(its: PullPod) -> dict:
    return pull_job_for(WANTED, IMAGE, its)


def pod(its: PullPod | None = None) -> dict:
    return job(its or like())["spec"]["template"]["spec"]


def test_its_container_asks_the_registry_and_ends():
    (container,) = pod()["containers"]

    assert container["image"] == IMAGE
    assert container["imagePullPolicy"] == "Always"
    assert container["command"] == ["/bin/true"]


def test_it_has_no_rights_no_mounts_no_token_and_no_gpu():
    """As the Pod Security Standard “restricted” has it."""
    spec = pod()
    (container,) = spec["containers"]

    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert (spec["securityContext"]["runAsNonRoot"], spec["securityContext"]["runAsUser"]) == (True, 65534)
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert {"volumes", "hostPID", "hostNetwork", "hostIPC", "runtimeClassName"}.isdisjoint(spec)
    assert {name for amounts in container["resources"].values() for name in amounts} == {"cpu", "memory"}
    assert container["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]


def test_it_goes_where_the_driver_goes_with_its_secrets_and_nowhere_else():
    spec = pod()

    assert spec["imagePullSecrets"] == [{"name": "ngc"}]
    assert TAINTED in spec["tolerations"]
    assert "node.kubernetes.io/unschedulable" in {each["key"] for each in spec["tolerations"]}
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}]


def test_it_runs_under_the_drivers_account_without_its_token():
    """Else admission would give it the pull secrets of `default`: a proof by other credentials."""
    spec = pod(like({"serviceAccountName": "nvidia-driver"}))

    assert (spec["serviceAccountName"], spec["imagePullSecrets"]) == ("nvidia-driver", [])
    assert spec["automountServiceAccountToken"] is False


def test_an_image_that_somebody_named_needs_no_account_and_no_user_of_its_own():
    """An image whose user is root is then pulled and not started."""
    spec = pod(PullPod())

    assert "serviceAccountName" not in spec
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert "runAsUser" not in spec["securityContext"]
    assert spec["tolerations"] == [{"operator": "Exists", "effect": "NoSchedule"}]


def test_it_ends_and_goes_by_itself_where_nobody_is_left():
    spec = job(like())["spec"]

    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (0, 1800, 600)


def test_where_the_namespace_gives_the_user_it_names_none():
    spec = pod(like(**{"openshift.driver-toolkit": "true"}))

    assert "runAsUser" not in spec["securityContext"]


def test_it_and_its_pod_carry_our_name_and_the_operations():
    made = job(like())

    assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"] == WANTED.labels
    assert WANTED.labels["app.kubernetes.io/managed-by"] == "quarterdeck"
    assert WANTED.labels["quarterdeck.io/proves-for"] == "operation-7"


def test_a_job_of_an_older_database_with_the_same_numbers_is_not_ours():
    """Z10."""
    metadata = job(like())["metadata"]

    assert is_ours(WANTED, metadata["labels"], metadata["annotations"])
    assert not is_ours(WANTED, metadata["labels"], {"quarterdeck.io/asked-at": "2025-01-08T12:00:00+00:00"})
    assert not is_ours(WANTED, {}, metadata["annotations"])

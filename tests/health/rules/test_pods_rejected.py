"""What an API server says to whoever makes pods, and what would change its mind."""

import pytest

from health.rules.base import RejectedOwner, Severity
from health.rules.pods_rejected import PodsRejected
from tests.reports import causes, steps, told
from wording.reports import LONGEST_SUMMARY, fit

GPUS = "requests.nvidia.com/gpu"
FULL = f"exceeded quota: gpus, requested: {GPUS}=4, used: {GPUS}=6, limited: {GPUS}=8"
NEVER = f"exceeded quota: gpus, requested: {GPUS}=16,pods=1, used: {GPUS}=0,pods=0, limited: {GPUS}=8,pods=10"


def evaluated(said: str, *, pod: str = "chat-7d9f-x8z2k", lacking: int = 1):
    told = f'Error creating: pods "{pod}" is forbidden: {said}'
    return PodsRejected().evaluate(RejectedOwner("Deployment team-a/chat", "team-a", told, lacking))


@pytest.mark.parametrize(
    ("said", "severity", "reason", "helps"),
    [
        (FULL, Severity.NOTE, "ResourceQuota team-a/gpus is used up.", "Have the quota raised"),
        (NEVER, Severity.WARNING, "requests more than ResourceQuota team-a/gpus allows", "Request less"),
        (
            "exceeded quota: cpu, requested: cpu=500m, used: cpu=1, limited: cpu=1",
            Severity.NOTE,
            "used up",
            "quota raised",
        ),
        ("failed quota: q: must specify limits.cpu for: main", Severity.WARNING, "does not set", "requests and limits"),
        (
            "maximum nvidia.com/gpu usage per Container is 1, but limit is 2",
            *(Severity.WARNING, "A LimitRange of the namespace", "or the LimitRange"),
        ),
        (
            "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
            *(Severity.WARNING, "in whole numbers and as a limit", "in the template's limits"),
        ),
        ("nvidia.com/gpu: Invalid value: 500m: must be an integer", Severity.WARNING, "whole numbers", "MIG slice"),
        (
            'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false',
            *(Severity.WARNING, "The pod security of the namespace", "pod-security.kubernetes.io/enforce"),
        ),
        (
            'admission webhook "validate.kyverno.svc-fail" denied the request: no team label',
            *(Severity.WARNING, 'webhook "validate.kyverno.svc-fail" rejects', "Ask who runs the webhook"),
        ),
        (
            'pod rejected: RuntimeClass "nvidia" not found',
            Severity.WARNING,
            "is missing",
            "Create the object that the message names",
        ),
        (
            "no PriorityClass with name high was found",
            Severity.WARNING,
            "is missing",
            "Create the object that the message names",
        ),
        (
            'error looking up service account team-a/x: serviceaccount "x" not found',
            *(Severity.WARNING, "is missing", "Create the object that the message names"),
        ),
        (
            'User "system:serviceaccount:kube-system:replicaset-controller" cannot create resource "pods"',
            *(Severity.WARNING, "", ""),
        ),
        ("something that nobody has heard of", Severity.WARNING, "", ""),
    ],
)
def test_what_is_said_says_why_and_what_would_change_it(said, severity, reason, helps):
    """Z31."""
    wrong = evaluated(said)

    assert wrong.severity == severity
    assert wrong.title == "Pods of Deployment team-a/chat are rejected"
    assert wrong.summary == fit("The API server says: {}", said, longest=LONGEST_SUMMARY)
    assert "Missing pods: 1" in told(wrong)
    assert reason in causes(wrong)
    assert bool(reason) == bool(causes(wrong))
    assert helps in steps(wrong)


def test_another_pod_and_other_numbers_are_the_same_trouble():
    now, later = evaluated(FULL), evaluated(FULL.replace("=6", "=7"), pod="chat-7d9f-aaaaa", lacking=2)

    assert now.fingerprint == later.fingerprint
    assert "Missing pods: 2" in told(later)


def test_a_quota_that_it_can_never_meet_is_another_trouble_than_one_that_is_used_up():
    assert evaluated(FULL).fingerprint != evaluated(NEVER).fingerprint


def test_who_has_all_its_pods_lacks_none():
    assert evaluated(FULL, lacking=0) is None


def test_words_without_an_end_are_cut():
    wrong = evaluated("x" * 900)

    assert len(wrong.summary) == LONGEST_SUMMARY
    assert "x" * 900 in told(wrong)


def test_of_what_nobody_says_that_it_is_of_gpus_it_is_a_note_that_says_so():
    said = 'Error creating: pods "llm-0" is forbidden: violates PodSecurity "restricted:latest": hostPath'
    of_gpus, unsaid = (
        PodsRejected().evaluate(RejectedOwner("PyTorchJob team-a/llm", "team-a", said, None, is_of_gpus=is_of_gpus))
        for is_of_gpus in (True, False)
    )

    assert (of_gpus.severity, unsaid.severity) == (Severity.WARNING, Severity.NOTE)
    assert of_gpus.summary == unsaid.summary
    assert "GPUs of a pod: unknown" in told(unsaid)
    assert "GPUs of a pod: unknown" not in told(of_gpus)


@pytest.mark.parametrize("which", ["head Pod team-a/ray-head-x", "worker Pod for the cluster team-a/ray"])
def test_what_kuberay_puts_before_it_names_a_pod_that_never_was(which):
    said = f'Failed to create {which}, pods "ray-head-x" is forbidden: {FULL}'

    wrong = PodsRejected().evaluate(RejectedOwner("RayCluster team-a/ray", "team-a", said, None))

    assert wrong.summary == fit("The API server says: {}", FULL, longest=LONGEST_SUMMARY)

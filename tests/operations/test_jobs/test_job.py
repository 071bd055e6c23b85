"""What a test Job asks for, and of whom it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.test_jobs.job_manifest import is_ours
from operations.test_jobs.test_job import WantedTestJob, job_for, resource_of

WANTED = WantedTestJob(
    "plan-7", 12, "gpu-1", "registry.example/burn:1", "nvidia.com/mig-1g.10gb", 2, "2026-01-08T12:00"
)


@pytest.mark.parametrize(
    ("offered", "amount", "resource"),
    [
        ({"nvidia.com/gpu": 8}, 1, "nvidia.com/gpu"),
        ({"nvidia.com/gpu": 8, "nvidia.com/mig-1g.10gb": 7}, 1, "nvidia.com/gpu"),
        ({"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": 7}, 2, "nvidia.com/mig-1g.10gb"),
        ({"nvidia.com/gpu": 1}, 2, ""),
        ({"cpu": 96}, 1, ""),
        ({}, 1, ""),
    ],
)
def test_it_asks_for_whole_gpus_where_there_are_as_many(offered: dict[str, int], amount: int, resource: str):
    assert resource_of(offered, amount) == resource


@given(
    st.dictionaries(st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "cpu"]), st.integers(-1, 9)),
    st.integers(0, 9),
)
def test_it_never_asks_for_what_is_not_offered(offered: dict[str, int], amount: int):
    chosen = resource_of(offered, amount)

    assert not chosen or offered[chosen] >= max(1, amount)


def test_it_can_do_nothing_but_work_on_its_gpus():
    spec = job_for(WANTED)["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]

    assert container["resources"]["limits"]["nvidia.com/mig-1g.10gb"] == "2"
    assert not pod["automountServiceAccountToken"]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert "volumes" not in pod
    assert (spec["backoffLimit"], pod["restartPolicy"]) == (0, "Never")


def test_a_job_of_another_asking_is_not_ours():
    """A database that was restored counts from an older number."""
    metadata = job_for(WANTED)["metadata"]

    assert is_ours(WANTED, metadata["labels"], metadata["annotations"])
    assert not is_ours(WANTED, metadata["labels"], {"quarterdeck.io/asked-at": "2025-01-01T12:00"})
    assert not is_ours(WANTED, {**metadata["labels"], "quarterdeck.io/proof": "13"}, metadata["annotations"])

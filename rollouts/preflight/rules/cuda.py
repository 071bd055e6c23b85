"""The CUDA versions of the pods' images, compared with the driver that they will run on.

Newer drivers run older CUDA. An image can only be too new for an older driver, as after a rollback.
"""

from collections.abc import Collection, Iterator, Sequence

from gpu.compatibility import the_matrix
from gpu.compatibility.entries import CudaFloor
from gpu.compatibility.ranges import is_older
from rollouts.checks import Check, each
from rollouts.preflight.facts import PodFacts, PreflightFacts
from wording.lists import one_or_count
from wording.numbers import either
from wording.reports import fit

HELPS = ("Move these workloads first, or add the CUDA compatibility package to their images.",)


def check_cuda(facts: PreflightFacts) -> Iterator[Check]:
    return too_new(facts.pods, driver=facts.to_version, before=facts.from_version, proven=facts.proven_images)


def too_new(
    pods: Sequence[PodFacts], *, driver: str, before: str, proven: Collection[str] = frozenset()
) -> Iterator[Check]:
    """Yields warnings for tenants' pods. `driver` is the coming one, `before` the present one.

    `proven` are images that were seen to run on it.
    """
    users = [pod for pod in pods if pod.is_tenant]
    needs = {
        pod: floor
        for pod in users
        if (floor := _minimum_driver(pod.cuda)) and driver and is_older(driver, floor.driver)
    }
    if needs:
        pods_shown = one_or_count([pod.name for pod in needs], "pod")
        title = fit("{} {} a newer driver than {}", pods_shown, either(len(needs), "needs", "need"), driver)
        items = each(
            (f"{pod.name} on {pod.node}", f"CUDA {pod.cuda} needs driver {floor.driver} or newer ({floor.source})")
            for pod, floor in needs.items()
        )
        summary = "The CUDA version of the image is too new for the driver."
        yield Check("cuda-too-new", title=title, summary=summary, evidence=items, steps=HELPS, is_grave=True)
    unknown = [pod for pod in users if pod.image not in proven and not _minimum_driver(pod.cuda)]
    if unknown and driver and before and is_older(driver, before):
        title = fit("The CUDA version of {} is unknown", one_or_count([pod.name for pod in unknown], "pod"))
        items = each((f"{pod.name} on {pod.node}", _cuda_text(pod)) for pod in unknown)
        summary = f"Driver {driver} is older than {before}. The pods may not run on it."
        steps = ("Test one pod of each workload on a node with that driver first.",)
        yield Check("cuda-unknown", title=title, summary=summary, evidence=items, steps=steps)


def _minimum_driver(cuda: str) -> CudaFloor | None:
    """Returns the minimum driver of a CUDA version; None if the version or its minimum is unknown."""
    return next((entry for entry in the_matrix().cuda if cuda and cuda in entry.cuda), None)


def _cuda_text(pod: PodFacts) -> str:
    return f"CUDA {pod.cuda}, which the matrix does not know" if pod.cuda else pod.image or "no image"

"""The effective request of a pod for any resource, from its containers.

kubernetes.io/docs/concepts/resource-management/effective-pod-requests-limits: containers and sidecars run together;
before that, each init container runs beside earlier sidecars. The higher amount counts, as in
AggregateContainerRequests of k8s.io/component-helpers/resource/helpers.go.
"""

from collections.abc import Callable, Sequence

from kube.structs.pod import Container

Requests = dict[str, int]  # by resource


def effective(
    containers: Sequence[Container],
    inits: Sequence[Container],
    requests: Callable[[Container], Requests],
) -> Requests:
    asking = [(each, asked) for each in inits if (asked := requests(each))]
    if len(containers) == 1 and not asking:
        return dict(requests(containers[0]))  # most pods
    running: Requests = {}
    for container in containers:
        _add(running, requests(container))
    sidecars: Requests = {}
    peak: Requests = {}
    for container, amounts in asking:
        asked = dict(amounts)
        if container.restart_policy == "Always":
            _add(running, asked)
            _add(sidecars, asked)
        else:
            _add(asked, sidecars)
            _raise_to_maximum(peak, asked)
    _raise_to_maximum(running, peak)
    return running


def _add(total: Requests, amounts: Requests) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _raise_to_maximum(total: Requests, amounts: Requests) -> None:
    for name, amount in amounts.items():
        total[name] = max(total.get(name, 0), amount)

"""Two workloads with a disruption budget, a Job in some schedules, and the controllers and kubelets of their pods.

A step is one reconcile of each: an evicted pod ends, a missing one starts on another node, and the budget is counted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.crashing.line import Line
from simulator.actors.objects import Obj, is_terminating, is_unschedulable, labels, name, spec
from simulator.clock import stamp
from simulator.kinds import DISRUPTION_BUDGET, JOB, NAMESPACE, NODE, POD

TEAM = "team-a"
PODS = f"/api/v1/namespaces/{TEAM}/pods"
CONTROLLER = "kube-controller-manager"
REPLICAS: Mapping[str, int] = {"db": 2, "web": 3}  # pods of "db" keep their names wherever they start
ALLOWED = 1  # of each workload may be away
TRAINING, WORKERS = "train", 3  # the Job, and its pods
OWNERS = {"db": ("apps/v1", "StatefulSet"), "web": ("apps/v1", "ReplicaSet"), TRAINING: ("batch/v1", "Job")}


@dataclass
class Tenants:
    line: Line
    nodes: tuple[str, ...] = ()  # on which they start first

    def plant(self) -> None:
        self.line.store.create(NAMESPACE, {"metadata": {"name": TEAM}})
        for app, replicas in REPLICAS.items():
            selector = {"matchLabels": {"app": app}}
            budget = {"metadata": {"name": app}, "spec": {"selector": selector, "minAvailable": replicas - ALLOWED}}
            self.line.store.create(DISRUPTION_BUDGET, budget, TEAM)
        self.step()

    def begin_job(self) -> None:
        containers = [{"name": "main", "image": "x"}]
        template = {"spec": {"restartPolicy": "Never", "containers": containers}}
        self.line.store.create(JOB, {"metadata": {"name": TRAINING}, "spec": {"template": template}}, TEAM)

    def end_job(self) -> None:
        """Its owner ends it."""
        for job in self.line.store.list(JOB, TEAM)[0]:
            self.line.store.delete(JOB, name(job), TEAM, grace_s=0)
        for pod in self.pods():
            if labels(pod)["app"] == TRAINING:
                self.end(name(pod))

    def step(self) -> None:
        for pod in self.pods():
            if is_terminating(pod):
                self.end(name(pod))
        for app, pod_name in self._missing():
            self._start(app, pod_name)
        self.count_budgets()

    def pods(self) -> list[Obj]:
        return list(self.line.store.list(POD, TEAM)[0])

    def end(self, pod_name: str) -> None:
        """Removes a pod at once."""
        self.line.notify(CONTROLLER, "DELETE", f"{PODS}/{pod_name}", {"gracePeriodSeconds": 0})

    def _missing(self) -> Iterator[tuple[str, str]]:
        jobs = {name(job): WORKERS for job in self.line.store.list(JOB, TEAM)[0]}
        for app, replicas in {**REPLICAS, **jobs}.items():
            there = {name(pod) for pod in self.pods() if labels(pod)["app"] == app}
            for number in range(replicas):
                if app == "db" and f"db-{number}" not in there:
                    yield app, f"db-{number}"
                elif app != "db" and number >= len(there):
                    yield app, f"{app}-{self.line.store.version}-{number}"

    def _start(self, app: str, pod_name: str) -> None:
        """On a node that takes pods; on none, it waits for one."""
        store = self.line.store
        free = [name(node) for node in store.list(NODE)[0] if "gpu" in name(node) and not is_unschedulable(node)]
        if not free:
            return
        used = [spec(pod)["nodeName"] for pod in self.pods()]
        chosen = min([node for node in self.nodes if node in free] or free, key=used.count)
        version, kind = OWNERS[app]
        owner = {"apiVersion": version, "kind": kind, "name": app}
        metadata = {"name": pod_name, "labels": {"app": app}}
        metadata["ownerReferences"] = [{**owner, "uid": f"uid-{app}", "controller": True}]
        pod = {"metadata": metadata, "spec": {"nodeName": chosen, "containers": [{"name": "main", "image": "x"}]}}
        self.line.notify(CONTROLLER, "POST", PODS, pod)
        running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        running["startTime"] = stamp(self.line.clock.now())
        store.patch(POD, pod_name, {"status": running}, TEAM, how="merge", subresource="status")

    def count_budgets(self) -> None:
        """Writes how many pods of each workload may be evicted now."""
        for budget in self.line.store.list(DISRUPTION_BUDGET, TEAM)[0]:
            healthy = sum(labels(pod)["app"] == name(budget) and not is_terminating(pod) for pod in self.pods())
            least = spec(budget)["minAvailable"]
            counted = {
                "disruptionsAllowed": max(0, healthy - least),
                "currentHealthy": healthy,
                "desiredHealthy": least,
            }
            counted |= {"expectedPods": REPLICAS[name(budget)], "observedGeneration": budget["metadata"]["generation"]}
            if {key: budget.get("status", {}).get(key) for key in counted} != counted:
                body: dict[str, Any] = {"status": {**counted, "disruptedPods": None}}
                self.line.store.patch(DISRUPTION_BUDGET, name(budget), body, TEAM, how="merge", subresource="status")

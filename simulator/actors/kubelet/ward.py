"""One pod in its kubelet's care: what a script may look at, and how it reports."""

from collections.abc import Callable, Sequence

from simulator.actors.durations import Durations
from simulator.actors.kubelet.host import Host
from simulator.actors.kubelet.sandbox import Container, Sandbox
from simulator.actors.kubelet.script import Script, Wait
from simulator.actors.objects import Obj, is_true, labels
from simulator.actors.world import World
from simulator.clock import stamp
from simulator.faults import Board
from simulator.kinds import NODE, POD
from simulator.refusals import Refused

SOURCE = "kubelet"
Dress = Callable[[Obj, Obj], Obj]
"""(pod, its report) -> the report with what only some kubelets say."""
GpusOf = Callable[[Obj], frozenset[int]]
"""pod -> the GPUs of its node that it was given, or a part of which."""


class Ward:
    def __init__(
        self,
        world: World,
        host: Host,
        box: Sandbox,
        durations: Durations,
        faults: Board,
        *,
        dress: Dress | None = None,
        gpus_of: GpusOf = lambda _pod: frozenset(),
    ) -> None:
        self.world = world
        self.host = host
        self.box = box
        self.durations = durations
        self.faults = faults
        self._dress = dress
        self.gpus_of = gpus_of

    @property
    def pod(self) -> Obj | None:
        return self.world[POD].of_uid(self.box.uid)

    @property
    def node(self) -> Obj | None:
        return self.world[NODE].get(self.host.name)

    def now(self) -> str:
        return stamp(self.world.loop.clock.now())

    def report(self) -> None:
        """The whole status as it is when its turn comes, so a report that failed is simply made again."""
        self.world.loop.soon(self._report)

    def _report(self) -> None:
        """A pod that is gone by now needs none."""
        if self.pod is not None:
            report = self.box.report(self.world.loop.clock.now())
            self.world.patch_status(POD, self.pod, self._dress(self.pod, report) if self._dress else report)

    def insist(self, write: Callable[[], None]) -> Script:
        """A write that the script cannot go on without."""
        while True:
            try:
                write()
            except (Refused, OSError):
                yield Wait(self.durations.retry)
            else:
                return

    def neighbours(self, app: str) -> list[Obj]:
        """Pods of one app on this node."""
        return [pod for pod in self.world[POD].by("node", self.host.name) if labels(pod).get("app") == app]

    def is_app_ready(self, app: str) -> bool:
        return any(is_true(pod, "Ready") for pod in self.neighbours(app))

    # What scripts have in common

    def begin(self) -> None:
        self.box.started_at = self.now()

    def run_init(self, container: Container, cluster_s: float) -> Script:
        self.start(container)
        self.report()
        yield Wait(cluster_s)
        container.end(self.now(), 0, "Completed")

    def start(self, container: Container) -> None:
        container.start(self.now())
        self._tell_start(container)

    def _tell_start(self, container: Container) -> None:
        image = f'"{container.image}"'
        if container.image in self.host.images:
            self.tell("Pulled", f"Container image {image} already present on machine")
        else:
            self.host.images.add(container.image)
            took = f"{self.durations.image_pull:g}s"
            self.tell("Pulling", f"Pulling image {image}")
            self.tell("Pulled", f"Successfully pulled image {image} in {took} ({took} including waiting)")
        self.tell("Created", f"Created container: {container.name}")
        self.tell("Started", f"Started container {container.name}")

    def start_all(self) -> None:
        self.box.phase = "Running"
        for container in self.box.containers:
            self.start(container)
        self.report()

    def become_ready(self) -> None:
        for container in self.box.containers:
            container.is_ready = True
        self.report()

    def crash_loop(
        self, container: Container, is_bad: Callable[[], bool], *, exit_code: int = 1, words: Sequence[str] = ()
    ) -> Script:
        """Die, back off, start again: until nothing is bad any more when it would die. `words`: all it writes."""
        backoff_s = self.durations.crash_backoff
        while is_bad():
            container.end(self.now(), exit_code, "Error")
            self.world.journal.note(self.box.uid, container.name, words)
            container.back_off(backoff_s, self._pod_words())
            self.report()
            self._tell_backoff(container)
            yield Wait(backoff_s)
            backoff_s = min(backoff_s * 2, self.durations.crash_backoff_max)
            container.restart(self.now())
            self._tell_start(container)
            self.report()
            yield Wait(self.durations.crash_after)

    def _pod_words(self) -> str:
        pod = self.pod
        return f"{pod['metadata']['name']}_{pod['metadata']['namespace']}({self.box.uid})" if pod else self.box.uid

    def _tell_backoff(self, container: Container) -> None:
        self.warn("BackOff", f"Back-off restarting failed container {container.name} in pod {self._pod_words()}")

    def tell(self, reason: str, words: str) -> None:
        if self.pod is not None:
            self.world.events.normal(self.pod, "Pod", reason, words, source=SOURCE)

    def warn(self, reason: str, words: str) -> None:
        if self.pod is not None:
            self.world.events.warning(self.pod, "Pod", reason, words, source=SOURCE)


Life = Callable[[Ward], Script]

"""The quota controller: keeps the status of each ResourceQuota true as pods come, end and go."""

from simulator.actors.objects import Obj, is_finished, namespace, status
from simulator.actors.world import World
from simulator.kinds import POD, RESOURCE_QUOTA
from simulator.quotas import hard_of, used, written

PAUSE_S = 1


class QuotaStatus:
    def __init__(self, world: World) -> None:
        self._world = world
        self._counting: set[str] = set()
        world[POD].index("namespace", namespace)
        world[RESOURCE_QUOTA].index("namespace", namespace)
        world[RESOURCE_QUOTA].on_change(lambda _was, quota: self._later(namespace(quota)) if quota else None)
        world[POD].on_change(self._pod_changed)

    def count(self, where: str) -> None:
        self._counting.discard(where)
        pods = self._world[POD].by("namespace", where)
        for quota in self._world[RESOURCE_QUOTA].by("namespace", where):
            taken = used(quota, pods)
            wanted = {
                "hard": quota["spec"].get("hard") or {},
                "used": {key: written(key, taken[key]) for key in hard_of(quota)},
            }
            if status(quota) != wanted:
                self._world.patch_status(RESOURCE_QUOTA, quota, wanted)

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        seen = pod or was
        is_news = was is None or pod is None or is_finished(was) != is_finished(pod)
        if seen and is_news and self._world[RESOURCE_QUOTA].objects:
            self._later(namespace(seen))

    def _later(self, where: str) -> None:
        """A burst of pods is counted once."""
        if where not in self._counting and self._world[RESOURCE_QUOTA].by("namespace", where):
            self._counting.add(where)
            self._world.loop.later(PAUSE_S, self.count, where)

"""Runs a Job's pods to completion, within parallelism, back-off limit and deadline; what has ended goes in time."""

from simulator.actors.making_pods import PodMaker
from simulator.actors.objects import (
    Key,
    Obj,
    controller,
    is_active,
    is_terminating,
    is_true,
    key,
    namespace,
    phase,
    status,
    uid,
)
from simulator.actors.replicaset import pod_from
from simulator.actors.world import World
from simulator.clock import stamp
from simulator.kinds import JOB, POD

BACKOFF_LIMIT = 6


class Jobs:
    def __init__(self, world: World) -> None:
        self._world = world
        self._timed: set[str] = set()  # uids of those whose deadline a timer keeps
        self._late: set[str] = set()
        self._maker = PodMaker(world, "Job", "job-controller", self.sync)
        world[JOB].on_change(self._job_changed)
        world[POD].on_change(self._pod_changed)

    def sync(self, at: Key) -> None:
        job = self._world[JOB].objects.get(at)
        if job is None or is_terminating(job) or is_over(job):
            return
        pods = self._world[POD].by("controller", uid(job))
        active = [pod for pod in pods if is_active(pod)]
        done = sum(phase(pod) == "Succeeded" for pod in pods)
        failed = sum(phase(pod) == "Failed" for pod in pods)
        wanted = int(job["spec"].get("completions") or 1)
        verdict = _verdict(job, done, failed, wanted)
        if not verdict and uid(job) in self._late:
            verdict = "DeadlineExceeded"
            for pod in active:
                self._world.delete(POD, pod)
            active = []
        if not verdict and not job["spec"].get("suspend"):
            room = min(int(job["spec"].get("parallelism", 1)), wanted - done) - len(active)
            active += [made for made in (self._start(job) for _ in range(room)) if made]
        self._write(job, len(active), done, failed, verdict)
        self._time(job)

    def forget(self, at: Key, job_uid: str) -> None:
        """The controller of TTLs after the end: the Job goes with its pods."""
        job = self._world[JOB].objects.get(at)
        if job is not None and uid(job) == job_uid and is_over(job):
            self._world.delete(JOB, job)

    def _time(self, job: Obj) -> None:
        """Its deadline counts from when it began; once."""
        deadline_s = job["spec"].get("activeDeadlineSeconds")
        if deadline_s is not None and uid(job) not in self._timed and not job["spec"].get("suspend"):
            self._timed.add(uid(job))
            self._world.loop.later(float(deadline_s), self._expire, key(job), uid(job))

    def _expire(self, at: Key, job_uid: str) -> None:
        self._late.add(job_uid)
        self.sync(at)

    def _start(self, job: Obj) -> Obj | None:
        pod = pod_from(job, api_version="batch/v1", kind="Job")
        names = {"batch.kubernetes.io/job-name": job["metadata"]["name"], "job-name": job["metadata"]["name"]}
        pod["metadata"]["labels"] |= names | {"batch.kubernetes.io/controller-uid": uid(job)}
        return self._maker.make(job, pod)

    def _write(self, job: Obj, active: int, done: int, failed: int, verdict: str) -> None:
        now = stamp(self._world.loop.clock.now())
        counted: Obj = {"active": active, "succeeded": done, "failed": failed}
        if "startTime" not in status(job):
            counted["startTime"] = now
        if verdict:
            counted["conditions"] = _conditions(verdict, now)
            if verdict == "Complete":
                counted["completionTime"] = now
        if any(status(job).get(part, 0) != value for part, value in counted.items()):
            self._world.patch_status(JOB, job, counted)

    def _job_changed(self, was: Obj | None, job: Obj | None) -> None:
        if job is None:
            self._timed.discard(uid(was) if was else "")
            self._late.discard(uid(was) if was else "")
        elif not is_over(job):
            self._world.loop.soon(self.sync, key(job))
        elif (kept_s := job["spec"].get("ttlSecondsAfterFinished")) is not None and not (was and is_over(was)):
            self._world.loop.later(float(kept_s), self.forget, key(job), uid(job))

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        seen = pod or was
        owner = controller(seen) if seen else None
        if seen and owner and owner["kind"] == "Job" and (was is None or pod is None or phase(was) != phase(pod)):
            self._world.loop.soon(self.sync, (namespace(seen), owner["name"]))


def is_over(job: Obj) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def _verdict(job: Obj, done: int, failed: int, wanted: int) -> str:
    if done >= wanted:
        return "Complete"
    return "Failed" if failed > int(job["spec"].get("backoffLimit", BACKOFF_LIMIT)) else ""


def _conditions(verdict: str, now: str) -> list[Obj]:
    """The API server wants the criterion before the verdict: SuccessCriteriaMet, then Complete."""
    reasons = {
        "Complete": ("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods"),
        "Failed": ("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit"),
        "DeadlineExceeded": ("FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline"),
    }
    first, reason, message = reasons[verdict]
    verdict = "Complete" if verdict == "Complete" else "Failed"
    shared = {"status": "True", "reason": reason, "message": message}
    shared |= {"lastProbeTime": now, "lastTransitionTime": now}
    return [{"type": first, **shared}, {"type": verdict, **shared}]

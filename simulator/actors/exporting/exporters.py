"""dcgm-exporter's /metrics of each node, behind its pod."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from simulator.actors import mig
from simulator.actors.apps import DCGM_EXPORTER, DCGM_EXPORTER_DRA, OWN_DCGM_EXPORTER
from simulator.actors.dra.holding import claims_of
from simulator.actors.dra.requests import taken
from simulator.actors.dra.slices import DRIVER
from simulator.actors.exporting.counters import UnreadableCounters
from simulator.actors.exporting.loads import Load
from simulator.actors.exporting.meters import Meter, Share
from simulator.actors.exporting.misbehaving import answered, distorted, name_given, whose_gpus
from simulator.actors.exporting.pages import Line, Page, Values
from simulator.actors.exporting.settings import Settings
from simulator.actors.exporting.sickness import Sickness
from simulator.actors.kubelet.devices import Holdings
from simulator.actors.kubelet.host import Host
from simulator.actors.kubelet.missing import missing_since_boot
from simulator.actors.objects import Obj, is_finished, is_true, labels, name, namespace, node_of, status, uid
from simulator.actors.skus import SKUS, Sku
from simulator.actors.uuids import gpu_uuid
from simulator.actors.world import World
from simulator.faults.board import Board
from simulator.kinds import CONFIG_MAP, POD
from simulator.pod_ends import Served
from simulator.refusals import Refused

PORT = 9400
EXPORTERS = (DCGM_EXPORTER, DCGM_EXPORTER_DRA, OWN_DCGM_EXPORTER)
Place = tuple[int, int]  # a GPU, and on it the place of an instance; -1 for the whole of it
WHOLE = -1


@dataclass(frozen=True, slots=True)
class User:
    """A pod with a device. `vgpu`: which replica of a shared one; `claim`: the labels of what it claimed it by."""

    pod: Obj
    vgpu: str = ""
    claim: tuple[tuple[str, str], ...] = ()


Users = dict[Place, list[User]]


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Who holds what of a node's GPUs, until that changes. `made_of`: what it was worked out from."""

    made_of: tuple[object, ...]
    lines: tuple[Line, ...]
    sharers: tuple[Line, ...]  # a line for each of those that share a device
    shares: tuple[dict[int, Share], ...]  # of each GPU, by place


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    made_of: tuple[object, ...]
    page: Page


class Exporters:
    """Served in the thread of the wire, while the actors play in theirs."""

    def __init__(self, world: World, hosts: dict[str, Host], holdings: Holdings, faults: Board) -> None:
        self._world = world
        self._hosts = hosts
        self._holdings = holdings
        self._faults = faults
        self._asked: dict[str, int] = {}
        self._stale: set[str] = set()
        self._held: dict[str, Held] = {}
        self._prepared: dict[str, Prepared] = {}
        self._settings: dict[str, Settings | None] = {}
        self._meters: dict[str, tuple[Host, list[Meter], str]] = {}
        self._sickness = Sickness(faults, self._now_s, self._catch_up)
        world[POD].on_change(self._pod_changed)

    def serve(self, pod: Obj, path: str) -> Served | None:
        """None: nothing listens there."""
        host = self._hosts.get(node_of(pod))
        if labels(pod).get("app") not in EXPORTERS or host is None or path.strip("/") != "metrics":
            return Served(b"404 page not found\n", status=404)
        sku, settings = SKUS.get(host.model), self._settings_of(pod)
        if sku is None or settings is None or not host.driver:
            return None  # it ends as soon as it has begun
        self._asked[host.name] = asked = self._asked.get(host.name, -1) + 1
        text = self._text(pod, host, sku, settings)
        text = distorted(self._faults, host.name, text, now_s=self._now_s(), asked=asked)
        return answered(self._faults, host.name, text)

    def _text(self, pod: Obj, host: Host, sku: Sku, settings: Settings) -> str:
        meters = self._meters_of(host, sku, exporter=_run_of(pod))
        held = self._follow(host, sku, meters)
        page = self._page(host, sku, settings, held, meters)
        boards = [meter.board() for meter in meters]
        values: dict[Place, Values] = {}
        for gpu, meter in enumerate(meters):
            for (place, share), used in zip(held.shares[gpu].items(), meter.used, strict=True):
                values[gpu, place] = boards[gpu] | meter.part(share, used)
        lines = page.lines
        return page.render([values[line.gpu, line.place] for line in lines], [meters[line.gpu] for line in lines])

    def _now_s(self) -> float:
        return self._world.loop.clock.now().timestamp()

    # What it is set to

    def _settings_of(self, pod: Obj) -> Settings | None:
        """Read once, when it starts. None: it cannot read its counters."""
        if uid(pod) not in self._settings:
            try:
                self._settings[uid(pod)] = Settings.of(pod, self._read_file)
            except UnreadableCounters:
                self._settings[uid(pod)] = None
        return self._settings[uid(pod)]

    def _read_file(self, where: str, config_map: str, key: str) -> str | None:
        try:
            found = self._world.cluster.get(CONFIG_MAP, config_map, where)
        except Refused:
            return None
        text = (found.get("data") or {}).get(key)
        return None if text is None else str(text)

    # What its GPUs do

    def _meters_of(self, host: Host, sku: Sku, *, exporter: str) -> list[Meter]:
        known = self._meters.get(host.name)
        if known is None or known[0] is not host:
            now_s, uuids = self._now_s(), [gpu_uuid(host.name, gpu) for gpu in range(host.gpus)]
            known = (host, [Meter.of(sku, uuid, now_s, loads=host.unloads) for uuid in uuids], exporter)
        self._meters[host.name] = (host, known[1], exporter)
        return known[1]

    def _follow(self, host: Host, sku: Sku, meters: list[Meter]) -> Held:
        held, now_s, exporter = self._held_on(host, sku), self._now_s(), self._meters[host.name][2]
        faults = self._sickness.on(host.name)
        for gpu, meter in enumerate(meters):
            mine = tuple(since for since in faults if since[0].has(gpu)) if faults else ()
            shares = tuple(held.shares[gpu].values())
            meter.follow(now_s, shares, mine, loads=host.unloads, exporter=exporter)
        return held

    def _catch_up(self, nodes: Iterable[str]) -> None:
        """Faults there begin or end now: what they did until now is counted before."""
        for node_name in nodes:
            host, known = self._hosts.get(node_name), self._meters.get(node_name)
            if host is not None and known is not None and known[0] is host:
                self._follow(host, SKUS[host.model], known[1])

    # Who holds them

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        for each in (was, pod):
            if each is not None and node_of(each):
                self._stale.add(node_of(each))
        if pod is None and was is not None:
            self._settings.pop(uid(was), None)

    def _held_on(self, host: Host, sku: Sku) -> Held:
        made_of = (host, host.mig, host.plugin)
        known = self._held.get(host.name)
        if known is not None and known.made_of == made_of and host.name not in self._stale:
            return known
        self._stale.discard(host.name)
        users = self._users(host)
        lines = tuple(_lines(host, users))
        sharers = tuple(
            replace(line, holder=user.pod, vgpu=user.vgpu, claim=user.claim)
            for line in lines
            for user in users.get((line.gpu, line.place), ())
        )
        held = self._held[host.name] = Held(made_of, lines, sharers, _shares(host, sku, lines, users))
        return held

    def _users(self, host: Host) -> Users:
        users: Users = {}
        for pod_uid, devices in self._holdings.on(host.name).items():
            pod = self._world[POD].of_uid(pod_uid)
            if pod is None:
                continue
            for device in devices:
                place = device.place if device.profile else WHOLE
                users.setdefault((device.gpu, place), []).append(User(pod, vgpu=device.id.partition("::")[2]))
        for pod in self._world[POD].by("node", host.name):
            for claim in claims_of(self._world, pod) if not is_finished(pod) else ():
                for called in sorted(called for pool, called in taken(claim) if pool == host.name):
                    users.setdefault(_place(called), []).append(User(pod, claim=_claimed(claim, host.name, called)))
        return users

    # What is written of them

    def _page(self, host: Host, sku: Sku, settings: Settings, held: Held, meters: list[Meter]) -> Page:
        gone = frozenset(gpu for gpu, meter in enumerate(meters) if meter.strain.is_gone)
        gone = gone.union(missing_since_boot(self._faults, host))
        hostname, whose = name_given(self._faults, host.name), whose_gpus(self._faults, host.name)
        made_of = (held, settings, host.driver, gone, hostname, whose)
        known = self._prepared.get(host.name)
        if known is None or known.made_of != made_of:
            written = held.sharers if settings.names_pods and settings.names_all else held.lines
            named = (replace(line, uuid=gpu_uuid(whose, line.gpu)) for line in written if line.gpu not in gone)
            page = Page(settings, sku.model_name, hostname, host.driver, list(named))
            known = self._prepared[host.name] = Prepared(made_of, page)
        return known.page


def _run_of(exporter: Obj) -> str:
    reports = status(exporter).get("containerStatuses") or [{}]
    return f"{uid(exporter)}/{reports[0].get('restartCount', 0)}"


def _place(device: str) -> Place:
    """Of the name that a slice gives it: gpu-3, gpu-3-mig-1g10gb-2."""
    parts = device.split("-")
    return int(parts[1]), int(parts[-1]) if len(parts) > 2 else WHOLE


def _claimed(claim: Obj, pool: str, device: str) -> tuple[tuple[str, str], ...]:
    """NVIDIA/dcgm-exporter, internal/pkg/transformation/const.go."""
    return (
        ("dra_claim_name", name(claim)),
        ("dra_claim_namespace", namespace(claim)),
        ("dra_device_name", device),
        ("dra_driver_name", DRIVER),
        ("dra_pool_name", pool),
    )


def _lines(host: Host, users: Users) -> Iterator[Line]:
    """Of a shared GPU one of those that hold it, as the exporter does without its own setting for shared ones."""
    for gpu, slices in enumerate(host.layout):
        whole = Line(gpu, gpu_uuid(host.name, gpu))
        if slices is None:
            yield _held(whole, users)
            continue
        profiles = [profile for profile, count in sorted(slices.items()) for _ in range(count)]
        for place, profile in enumerate(profiles):
            yield _held(replace(whole, place=place, profile=profile), users)


def _held(line: Line, users: Users) -> Line:
    found = users.get((line.gpu, line.place))
    return replace(line, holder=found[-1].pod, claim=found[-1].claim) if found else line


def _shares(host: Host, sku: Sku, lines: Iterable[Line], users: Users) -> tuple[dict[int, Share], ...]:
    everybody = [user.pod for sharing in users.values() for user in sharing]
    gpus = Counter(uid(pod) for pod in everybody)
    loads = {uid(pod): Load.of(pod, gpus[uid(pod)]) for pod in everybody}
    shares: tuple[dict[int, Share], ...] = tuple({} for _ in range(host.gpus))
    for line in lines:
        here = [user.pod for user in users.get((line.gpu, line.place), ()) if is_true(user.pod, "Ready")]
        mine = tuple(loads[uid(pod)] for pod in here)
        part, memory_mib = 1.0, sku.memory_mib
        if line.profile:
            profile = mig.PROFILES[sku.family][line.profile]
            part, memory_mib = profile.slices / mig.SLICES, profile.memory_mib
        shares[line.gpu][line.place] = Share(mine, part, memory_mib)
    return shares

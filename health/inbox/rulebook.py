"""The rulebook: each rule with its text, its scope, its confirmation time and its causes."""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, OuterRef

from fleet.models import Cluster, Node
from health.correlation import EXPLAINED_BY
from health.evaluation.finding_sources import SOURCES
from health.evaluation.signals import AnyRule
from health.inbox.last_seen import without_telemetry
from health.lifecycle import FindingState
from health.models import Finding, FindingAct, RuleShadow
from health.rules import RULES
from health.rules.base import NODE
from health.rules.gpus import GPU_RULES
from health.rules.limits import Comparing
from health.sources.cluster_telemetry import standings_of
from health.sources.exported_metrics import NodesCounted, exporting_of
from people.models import User
from wording.numbers import count

DRAIN = "Cordon and drain the node, so that nothing is lost: kubectl drain NODE --ignore-daemonsets."
RESET = "Once nothing uses the GPU, reset it (nvidia-smi -r -i UUID on the node), or reboot the node."
BACK = "When the finding is resolved, let pods come again: kubectl uncordon NODE."
REPLACE = (
    "Where it comes again after that, have the board replaced: open a case, with nvidia-bug-report.sh of the node."
)
REPORT = "Keep the evidence before anything is reset: nvidia-bug-report.sh and the kernel log (dmesg -T) of the node."
WHOM = "Look under Impact whom it hits, and tell them."
STACK = "Open the page of the node: its GPU stack says which operand does not run, and why."

RUNBOOKS: Mapping[str, Sequence[str]] = {
    "allocatable-below-expected": (
        "Look whether capacity fell, too (Evidence): then the node itself lost GPUs, else they are called unhealthy.",
        "Unhealthy: read the log of the device plugin's or DRA driver's pod on the node, then the kernel log.",
        "Lost: look for the GPUs in lspci and in the program of their vendor (nvidia-smi) on the node.",
        "Where an Xid is named, follow its finding first; where it is over, restart the pod of the device plugin.",
        DRAIN, "Reboot the node; where GPUs are still missing, have the hardware looked at.", BACK,
    ),
    "claims-waiting": (
        "Look which driver the DeviceClass names: kubectl get deviceclass.",
        "Look whether it publishes: kubectl get resourceslices. Without a slice no claim of it is allocated.",
        "Read the log of its plugin's pod on a node with such GPUs: a slice may be rejected by the API server.",
    ),
    "cluster-not-seen": (
        "Read why: a refused connection, a certificate, credentials or a right that is missing are told apart.",
        "Ask the API server from where Quarterdeck's worker runs: kubectl get --raw /readyz.",
        "On the host of the worker, bin/manage doctor says of each kind whether it is seen, and of what not.",
    ),
    "cluster-unwatched": (
        "Look whether a worker of the queue observe runs: bin/manage doctor.",
        "Start one, or give the queue more threads, as the finding says.",
    ),
    "compute-domain-down": (
        STACK,
        "An IMEX session in use: on the node, systemctl disable --now nvidia-imex, and delete the daemon's pod.",
        "Else compare the driver's versions on all nodes of the domain, and whether port 50000 is open between them.",
    ),
    "cordon-removed": (
        "Look on the node's timeline who had cordoned it, and why.",
        "Where that is not over, cordon it again: kubectl cordon NODE.",
        "Look which pods came meanwhile, and tell whose they are. Where a person uncordoned it, dismiss this.",
    ),
    "driver-object-stuck": (
        "Compare: kubectl get nvidiadriver, and the driver pods' label controller-revision-hash with the newest.",
        DRAIN, "Delete the driver pod of that node: its DaemonSet makes it of the newest template.", BACK,
    ),
    "cluster-policy-stuck": (
        "Compare: kubectl get clusterpolicy -o yaml (its conditions), and the pods' label controller-revision-hash.",
        DRAIN, "Delete the node's pods that are of an older template.", BACK,
    ),
    "drivers-conflict": (
        "Compare spec.nodeSelector of all NVIDIADrivers (kubectl get nvidiadriver -o yaml) with the nodes' labels.",
        "Make each node match one of them only.",
        "Look whether its condition ConflictingNodeSelector is gone; change a label of the object where it is not.",
    ),
    "cordon-stale": (
        "Look on the node's timeline who cordoned it and when, and ask whether the work there is over.",
        "Look at findings of the node: a fault may be there that whoever cordoned it does not report.",
        "Take the cordon and the marks beside it off, by the command of the finding.",
    ),
    "device-unhealthy": (
        "Read who says so (Evidence) and why: its log, then the kernel log of the node.",
        "Look which pod has the GPU, and tell its owner.",
        REPORT, DRAIN, RESET, REPLACE, BACK,
    ),
    "exporter-silent": (
        "Look whether its exporter's pod runs: the GPU stack on the node's page says why not.",
        "Ask it: kubectl exec in the pod, curl localhost:9400/metrics (DCGM's; the action has the port of others).",
        "Where it answers without GPUs, read its log: it may not reach its DCGM engine. Restart the pod.",
        "Where it answers with GPUs, look at the Targets page of Prometheus, and at the labels of the ServiceMonitor.",
        "Look at the label matchers of the cluster's source here, on the page of the cluster.",
    ),
    "gpu-called-unhealthy": (
        "Look at the GPU's page: findings about its memory or its temperature beside this one say why.",
        "Read the log of its exporter and of its device plugin on the node: they write what they saw.",
        "Drain the node when its work allows it, and reset the GPU by its vendor's tool or reboot the node.",
        "Where it is called unhealthy again, ask the vendor for another board.",
    ),
    "gpu-dcgm-health": (
        "Ask DCGM on the node why: dcgmi health -c says it in words.",
        DRAIN, "Run dcgmi diag -r 3 there, which takes the GPU for itself.", RESET, REPLACE, BACK,
    ),
    "gpu-ecc-corrected": (
        "Nothing is wrong yet: look how fast it grows, in the plots of the finding.",
        "In the next quiet hour: " + DRAIN, RESET,
        "Look whether rows were remapped: nvidia-smi -q -d ROW_REMAPPER.", REPLACE, BACK,
    ),
    "gpu-ecc-uncorrected": (
        "Tell the owner of what ran there: it may have computed with wrong numbers.",
        REPORT, DRAIN, RESET, "Look whether the row was remapped: nvidia-smi -q -d ROW_REMAPPER.", REPLACE, BACK,
    ),
    "gpu-fabric": (
        "Read the state of the fabric: nvidia-smi -q on the node, Fabric; and journalctl -u nvidia-fabricmanager.",
        "Compare the versions of the driver and of the Fabric Manager: they must be equal.",
        "Restart nvidia-fabricmanager while nothing uses the GPUs.", DRAIN, "Reboot the node.", REPLACE, BACK,
    ),
    "gpu-hot": (
        "Look at its neighbours on the node's page: where they are hot, too, it is the air of the chassis or the rack.",
        "Of all: have the inlet, the fans and what blocks the rack looked at.",
        "Of one alone: compare its power limit with its neighbours' (nvidia-smi -q -d POWER), then its cooler.",
        "Where it goes on, take work off: kubectl cordon NODE.",
    ),
    "gpu-memory-nearly-full": (
        "Look which pods have it, under Impact.",
        "Where that is as it should be there, give the pool its workload class, or a limit of its own.",
        "Else ask the owner whether the job needs so much: it ends where it asks for more than there is.",
    ),
    "gpu-nvlink-errors": (
        "See which link: nvidia-smi nvlink -e on the node, and the log of the Fabric Manager.",
        "Look whether the GPU at the other end has them, too: then it is the link or a switch, and not this board.",
        DRAIN, RESET, "Where errors come again, have it reseated. " + REPLACE, BACK,
    ),
    "gpu-nvlink-quiet": (
        "Compare nvidia-smi nvlink -s and nvidia-smi topo -m with a sound node.",
        "Where a link is down: " + DRAIN, RESET, BACK,
        "Where none is, ask the owner whether the job leaves this GPU out by design, and mute it here.",
    ),
    "gpu-pcie-replays": (
        "Look at the width and speed of its link (LnkSta in lspci -vv), and in the kernel log for AER.",
        "In the next maintenance have the board or its riser reseated.", REPLACE,
    ),
    "gpu-power-near-limit": (
        "Compare its power limit with those of its neighbours (nvidia-smi -q -d POWER): somebody may have lowered it.",
        "Where that is as it should be there, give the pool its workload class, or a limit of its own.",
    ),
    "gpu-recovery-action": (
        "Read the Xids that came before it: the finding about them says what happened.",
        REPORT, "Do what the action says. Reset or reboot: " + DRAIN, RESET,
        "Drain P2P: end the work that uses NVLink between the GPUs of the node.", REPLACE, BACK,
    ),
    "gpu-resets": (
        "Look on the timeline of its node what came before each reset, and who did it: a person, a job, NVSentinel.",
        "Where nothing was wrong with it, stop who resets it.",
        "Where an Xid or memory errors came back each time, a reset mends it no longer.",
        REPORT, DRAIN, "Run dcgmi diag -r 3 there, which takes the GPU for itself.", REPLACE, BACK,
    ),
    "gpu-row-remap": (
        "Look which it is: nvidia-smi -q -d ROW_REMAPPER on the node.",
        "Pending: in the next quiet hour. Failed: now. " + DRAIN,
        "Pending: reset the GPU (nvidia-smi -r -i UUID), or reboot the node.",
        "Failed: run NVIDIA's field diagnostics and have the board replaced.", BACK,
    ),
    "gpu-silent": (
        WHOM, "Look for it in lspci and in the program of its vendor (nvidia-smi) on the node.",
        "Where both have it, read the exporter's log, and restart its pod.",
        REPORT, DRAIN, "Reboot the node; where the GPU does not come back, have the hardware looked at.", BACK,
    ),
    "gpu-throttled": (
        "See the reason as it is now: nvidia-smi -q -d PERFORMANCE on the node.",
        "By heat: look at the air, as for a GPU that is too hot.",
        "By its board or the power brake: look at the power supplies of the chassis, in its BMC.",
    ),
    "gpu-xid": (
        "Read what its action asks for: NVIDIA's catalogue tells applications' errors from those of the hardware.",
        "Of an application: send its owner there, with the time. The GPU stays.",
        REPORT, DRAIN,
        "Reset or reboot, as the action says: 79 needs a reboot. " + RESET,
        "After a change of the driver (119, 120, 143): compare with nodes on the old one, and halt the plan.",
        "45 alone in the kernel log, though no process was killed: NVIDIA asks for the Fabric Manager to be restarted.",
        REPLACE, BACK,
    ),
    "gpus-never-offered": (
        STACK,
        "Ready and nothing offered: read the log of the plugin's or DRA driver's pod. Most look for GPUs only once.",
        "Look whether the driver runs on the node (nvidia-smi, amd-smi), then delete the plugin's pod there.",
        "No operand at all: look at the labels that its DaemonSets select by, and at the node's taints.",
    ),
    "idle-gpus": (
        "Ask whose pods they are: one that waits for data or for its peers has its GPUs as one that works does.",
        "End what nobody needs, and tell its owner.",
    ),
    "inference-on-time-slices": (
        "Ask whether its latency matters: neighbours on the same GPU take turns with it, and share its memory.",
        "Give it whole GPUs, MIG slices or MPS, by the configuration of the device plugin.",
    ),
    "mig-change-stuck": (
        "Read the log of the MIG manager's pod on the node: most often something still uses a GPU.",
        DRAIN,
        "Where it gave up, set the label nvidia.com/mig.config to another value and back.",
        "Look at the labels nvidia.com/gpu.deploy.*: what it paused is to be true again.", BACK,
    ),
    "node-conditions": (
        "Read the message of each condition (Evidence), who says it, and the action that it recommends.",
        "NVSentinel: follow its own remediation; with its quarantine on it has cordoned the node.",
        "EKS, Nebius: look whether the cloud repairs or replaces the node by itself, before you do.",
        "Kubelet or runtime start again and again: journalctl -u kubelet -u containerd; restart the runtime first.",
        "Pressure: look what uses memory, disk or PIDs there, before the kubelet evicts.",
        "Else read the kernel log and the node's events: kubectl describe node NODE.",
    ),
    "node-flapping": (
        "Take work off it: kubectl cordon NODE.",
        "Read the kubelet's log, and look at memory and disk of the node.",
        "Look at the network between it and the API server.", BACK,
    ),
    "node-not-ready": (
        WHOM, "Look whether the machine answers: its console, its BMC.",
        "Read why: kubectl describe node NODE, then journalctl -u kubelet there.",
        "Where its runtime does not answer, restart that first, then the kubelet.",
        "Where it stays away, reboot it, or take it out of service.",
    ),
    "observer-behind": (
        "Look at the CPU of the worker that observes the cluster, and at the database.",
        "Give the queue observe a worker more.",
    ),
    "operand-down": (
        STACK, "Read the last log of the pod that crashes: kubectl logs POD --previous.",
        "Where there is none, look for a taint that it does not tolerate, and at the labels nvidia.com/gpu.deploy.*.",
    ),
    "operator-down": (
        "Describe its Deployment: kubectl describe deployment in its namespace.",
        "Read its pod's last log: kubectl logs POD --previous.",
        "Where it was scaled to 0, ask who did it and why, and scale it to 1 again.",
    ),
    "paused-operands": (
        "Look whether the driver runs on the node: the GPU stack on its page.",
        "Where it does, delete the driver's pod: the driver manager takes the pause off itself.",
        "Else set the labels nvidia.com/gpu.deploy.* that say paused-for-driver-upgrade to true.",
    ),
    "pods-failing": (
        "See why: the node's page has the cause and its line; kubectl describe pod POD has all Events.",
        "A container that ran has a log: kubectl logs POD --previous. One that ends with StartError has none.",
        "An image: its events say what the registry says. An operand: the GPU stack on the node's page says why.",
        "Where pods of a workload fail on this node alone, look at its driver and GPUs; everywhere, at the workload.",
    ),
    "pods-not-starting": (
        "Read the line of the kubelet on the node's page, or kubectl describe pod POD.",
        "A claim: look at the DRA driver's pod on the node. A sandbox: at the container runtime and the toolkit.",
        "A volume: look at the claim and at its attachments. Nothing at all: a large image may still be pulled.",
    ),
    "pods-rejected": (
        "Read what the API server says, in the finding or by kubectl describe of the owner: it names who rejects.",
        "By a quota: kubectl describe resourcequota -n NAMESPACE says what is used. Wait, end something, or raise it.",
        "By a LimitRange, validation or pod security: change the template. By a webhook: ask who runs that.",
        "The controller tries again by itself, after 17 minutes at most; a Deployment that is restarted does at once.",
    ),
    "series-explosion": (
        "Find the label that grows: topk by it in Prometheus.",
        "Drop the series where they are scraped: metricRelabelings of the ServiceMonitor.",
        "Take the drop away once the exporter no longer makes them.",
    ),
    "telemetry-silent": (
        "Read why on the page of the cluster: no answer, a refusal, HTML and a timeout are told apart.",
        "Ask it from where Quarterdeck's worker runs: GET /-/ready of the Prometheus.",
        "Look at its secret (a file or the name of a variable), its CA and its label matchers, and test the source.",
    ),
    "unsupported-combination": (
        "Open the page of the cluster: it has each combination, on how many nodes, and its source.",
        "Plan a change to versions that go together; what is known to fail comes first.",
    ),
    "upgrade-failed": (
        STACK, "Mend what keeps the driver's pod, or the validator's, as the action says.",
        "Label the node so that the operator tries again: nvidia.com/gpu-driver-upgrade-state=upgrade-required.",
        "Where several nodes fail so, halt the plan and roll it back.",
    ),
    "upgrade-queue-still": (
        "Look which nodes take the operator's slots, as the action says: failed ones keep theirs.",
        "Mend those first, or raise maxParallelUpgrades or maxUnavailable of the upgrade policy.",
    ),
    "upgrade-stuck": (
        STACK, "Look for what keeps it: a pod that may not be evicted, a PodDisruptionBudget, a job it waits for.",
        "Look at the driver's pod: an image that is not there for this system, a module that is in use.",
        "Where several nodes are stuck so, halt the plan.",
    ),
    "versions-disagree": (
        "Ask the driver itself: nvidia-smi in its pod on the node.",
        "Where it is what the image says, restart GPU feature discovery's pod there.",
        "Else the old module is still loaded: " + DRAIN, "Restart the driver's pod, or reboot the node.", BACK,
    ),
    "xid-of-unknown-gpu": (
        "Read the kernel log of the node (dmesg -T, NVRM: Xid): the PCI address names the GPU.",
        "Look for the Xid before it: 45 follows another one, or the end of a process.",
        "Look which labels the series lost, in the exporter's configuration or the relabelling of Prometheus.",
        REPORT, "Do what the action of that Xid asks for.",
    ),
    "workload-fails-here": (
        "Compare the last log of the pod that fails (kubectl logs POD --previous) with one that runs elsewhere.",
        "Take work off the node until it is known: kubectl cordon NODE.",
        "Hold the node against its twin (its page): driver, kernel, layout, numbers of its GPUs.",
        "Run dcgmi diag -r 3 there once it is drained.", BACK,
    ),
}  # fmt: skip


SHOWN = (FindingState.OPEN, FindingState.ACKNOWLEDGED, FindingState.MUTED)
FOR_DEVELOPERS = re.compile(r" \(Z\d+(?:, Z\d+)*\)")  # what a module's own words refer to


@dataclass(frozen=True)
class LimitsOnPage:
    """The rule's own limits with their unit."""

    warn: float
    critical: float | None
    warn_after: timedelta
    critical_after: timedelta
    unit: str

    @property
    def warn_after_s(self) -> float:
        return self.warn_after.total_seconds()

    @property
    def critical_after_s(self) -> float:
        return self.critical_after.total_seconds()


@dataclass(frozen=True)
class RuleEntry:
    key: str
    title: str
    says: str  # what is wrong where it speaks
    of: str  # what it is asked of
    after: timedelta  # how long it must be so
    reads: tuple[str, ...]  # kinds of Kubernetes, or metrics of exporters
    explained_by: tuple[str, ...]  # titles of the rules under whose findings its own are listed
    steps: Sequence[str] = ()  # what to do about a finding of it, in this order
    limits: LimitsOnPage | None = None  # None: it compares no number that a pool may have of its own

    @property
    def after_s(self) -> float:
        return self.after.total_seconds()


@dataclass(frozen=True)
class SeenIn:
    """The coverage of a GPU rule in one cluster: the nodes that export any metric that it reads."""

    cluster: str
    nodes: NodesCounted

    @property
    def sentence(self) -> str:
        """Returns a sentence such as "on 12 of 40 nodes nothing that it reads is exported"; empty at full coverage."""
        of = count(self.nodes.of, "node")
        lacking = f"on {self.nodes.not_exported} of {of} nothing that it reads is exported"
        silent = f"of {self.nodes.never_reported} of {of} nothing was heard within a day"
        said = ((self.nodes.not_exported, lacking), (self.nodes.never_reported, silent))
        return ", and ".join(words for number, words in said if number)


@dataclass(frozen=True)
class RuleOnPage:
    entry: RuleEntry
    open: int  # findings that the person sees and that stand on their own
    accepted: int
    dismissed: int
    shadow: RuleShadow | None = None  # its trial; None: it is on none
    would_notify: int = 0  # in shadow mode: findings that the person sees and that would be open
    seen_in: tuple[SeenIn, ...] = ()  # of a rule on GPUs: by cluster that the person sees and that is heard
    silent_in: tuple[str, ...] = ()  # of a rule on GPUs: those of whose GPUs nothing is heard
    listed: int = 0  # open findings that the person sees beside those, under their causes

    @property
    def limits(self) -> LimitsOnPage | None:
        return self.entry.limits

    @property
    def blind_in(self) -> list[str]:
        """Returns the clusters that export none of the rule's metrics."""
        return [one.cluster for one in self.seen_in if 0 < one.nodes.of == one.nodes.not_exported]

    @property
    def partly_in(self) -> list[SeenIn]:
        """Returns the clusters where the rule covers some of the nodes, or may."""
        return [one for one in self.seen_in if one.nodes.exported < one.nodes.of != one.nodes.not_exported]

    @property
    def partly(self) -> NodesCounted:
        """Returns the sum of these clusters."""
        those = [one.nodes for one in self.partly_in]
        return NodesCounted(
            exported=sum(one.exported for one in those),
            not_exported=sum(one.not_exported for one in those),
            never_reported=sum(one.never_reported for one in those),
        )


def every_rule() -> list[RuleEntry]:
    """Returns all rules by title."""
    found = [_entry(rule, rule.subject, rule.reads) for rule in RULES]
    found += [_entry(rule, "GPU", rule.metrics) for rule in GPU_RULES]
    found += [
        RuleEntry(source.key, source.title, source.says, "plans and what they hold", source.after, (), (), source.steps)
        for source in SOURCES.values()
    ]
    return sorted(found, key=lambda entry: entry.title)


def on_page(user: User, *, now: datetime) -> list[RuleOnPage]:
    """Returns the rulebook, with 12 queries and two Redis requests for each cluster with telemetry."""
    own = Finding.objects.on_their_own_to(user).open().order_by()
    open_now = dict(own.values_list("rule").annotate(number=Count("pk")))
    every = Finding.objects.visible_to(user).open().order_by()
    with_listed = dict(every.values_list("rule").annotate(number=Count("pk")))
    tried = Finding.objects.visible_to(user).filter(is_shadow=True, state__in=SHOWN).order_by()
    would_notify = dict(tried.values_list("rule").annotate(number=Count("pk")))
    shadows = {row.rule: row for row in RuleShadow.objects.in_force()}
    acts = FindingAct.objects.visible_to(user).filter(verb__in=("accept", "dismiss")).order_by()
    said = {
        (rule, verb): number for rule, verb, number in acts.values_list("rule", "verb").annotate(number=Count("pk"))
    }
    seen_in, silent = _seen_in(user, now=now), _silent(user, now=now)
    on_gpus = {rule.key for rule in GPU_RULES}
    return [
        RuleOnPage(
            entry,
            open_now.get(entry.key, 0),
            said.get((entry.key, "accept"), 0),
            said.get((entry.key, "dismiss"), 0),
            shadows.get(entry.key),
            would_notify.get(entry.key, 0),
            seen_in.get(entry.key, ()),
            silent if entry.key in on_gpus else (),
            listed=max(0, with_listed.get(entry.key, 0) - open_now.get(entry.key, 0)),
        )
        for entry in every_rule()
    ]


def _seen_in(user: User, *, now: datetime) -> dict[str, tuple[SeenIn, ...]]:
    """Returns the coverage by rule and cluster name."""
    clusters = dict(Cluster.objects.visible_to(user).order_by("name").values_list("pk", "name"))
    reporting = {key: standing for key, standing in standings_of(clusters, now=now).items() if standing.is_reporting}
    exporting = exporting_of(reporting, Node.objects.visible_to(user))
    return {
        rule.key: tuple(SeenIn(clusters[key], each.of_rule(rule)) for key, each in exporting.items())
        for rule in GPU_RULES
    }


def _silent(user: User, *, now: datetime) -> tuple[str, ...]:
    """Returns the names of clusters without telemetry, in order. Clusters without GPUs are left out."""
    with_gpus = Cluster.objects.visible_to(user).filter(Exists(Node.objects.with_gpus().filter(cluster=OuterRef("pk"))))
    clusters = dict(with_gpus.order_by("name").values_list("pk", "name"))
    silent = without_telemetry(clusters, now=now)
    return tuple(name for key, name in clusters.items() if key in silent)


def _entry(rule: Any, of: str, reads: tuple[str, ...]) -> RuleEntry:
    every: tuple[AnyRule, ...] = (*RULES, *GPU_RULES)
    titles = {each.key: each.title for each in every}
    causes = tuple(titles.get(key, key) for key in EXPLAINED_BY.get(rule.key, ()))
    written = inspect.getdoc(inspect.getmodule(rule.evaluate)) or rule.title
    says = FOR_DEVELOPERS.sub("", " ".join(written.split("\n\n")[0].split()))
    return RuleEntry(
        *(rule.key, rule.title, says, "each node" if of == NODE else of, rule.after, reads, causes),
        steps=RUNBOOKS.get(rule.key, ()),
        limits=_limits(rule),
    )


def _limits(rule: Any) -> LimitsOnPage | None:
    if not isinstance(rule, Comparing):
        return None
    own = rule.limits
    return LimitsOnPage(own.warn, own.critical, own.warn_after, own.critical_after, rule.scale.unit)

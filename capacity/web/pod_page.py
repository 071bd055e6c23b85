"""The page of one GPU pod."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from capacity.pods.story import story_of
from capacity.wait_reasons.amounts import amount_text
from capacity.wait_reasons.obstacles import CPU, MEMORY
from capacity.wait_reasons.pod_rules import read_rules
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.messages.numbers import numbers_of
from fleet.models import Pod
from people.rights import Permission, scope_of


def pod(request: PersonRequest, pod_id: int) -> HttpResponse:
    row = _visible(request, pod_id)
    seen = {"seq": numbers_of({row.cluster_id: row.cluster.batch})}
    return render(request, "capacity/pod/page.html", {**seen, **_pod(request, row)})


@part_response
def pod_part(request: PersonRequest, pod_id: int) -> HttpResponse:
    return render(request, "capacity/pod/_body.html", _pod(request, _visible(request, pod_id)))


def _visible(request: PersonRequest, pod_id: int) -> Pod:
    return get_object_or_404(
        Pod.objects.visible_to(request.user).select_related("cluster__observer", "node"), pk=pod_id
    )


def _pod(request: PersonRequest, row: Pod) -> dict[str, Any]:
    story = story_of(row, user=request.user, now=timezone.now())
    administers = scope_of(request.user, Permission.ADMINISTER).covers_cluster(row.cluster_id)
    context = f" --context {row.cluster.context}" if row.cluster.context and administers else ""
    return {
        "pod": row,
        "line": story.line,
        "story": story,
        "freshness": story.freshness,
        "cpu_and_memory": ", ".join(
            amount_text(name, amount) for name, amount in ((CPU, row.cpu_m), (MEMORY, row.memory_bytes)) if amount
        ),
        "placement": _placement(row),
        "pull_facts": story.image_pull.sentences(now=timezone.now()) if story.image_pull else [],
        "commands": [
            f"kubectl{context} -n {row.namespace} describe pod {row.name}",
            f"kubectl{context} -n {row.namespace} get pod {row.name} -o yaml",
            *([f"kubectl{context} -n {row.namespace} logs {row.name} --all-containers"] if row.node_name else []),
        ],
    }


def _placement(row: Pod) -> list[tuple[str, list[str]]]:
    """Returns what the pod asks of its node: name, and a line for each part."""
    placement = row.placement
    rules = read_rules(placement, row.namespace, row.labels)
    selector = [f"{key}={value}" for key, value in sorted(placement.get("node_selector", {}).items())]
    found = [
        ("Scheduler", [placement["scheduler"]] if placement.get("scheduler") else []),
        ("Priority", [str(placement["priority"])] if placement.get("priority") else []),
        ("Scheduling gates", placement.get("gates", [])),
        ("Nominated node", [placement["nominated_node"]] if placement.get("nominated_node") else []),
        ("Node selector", selector),
        ("Node affinity (one is enough)", [_term(term) for term in placement.get("node_affinity", [])]),
        ("Tolerations", [_toleration(each) for each in placement.get("tolerations", [])]),
        ("Topology spread", [f"{each.pods.text} over {each.key}, maxSkew {each.max_skew}" for each in rules.spread]),
        ("Near other pods", [each.text for each in rules.affinity]),
        ("Apart from other pods", [each.text for each in rules.anti_affinity]),
        ("Host ports", [each.text for each in rules.ports]),
        ("Volume claims", placement.get("volume_claims", [])),
        ("Not decoded", placement.get("unread", [])),
    ]
    return [(name, lines) for name, lines in found if lines]


def _term(term: list[dict[str, Any]]) -> str:
    return ", ".join(
        " ".join(filter(None, (each["key"], each["operator"], ", ".join(each["values"])))) for each in term
    )


def _toleration(given: dict[str, str]) -> str:
    key = given["key"] or "every taint"
    value = f"={given['value']}" if given["operator"] == "Equal" else ""
    return f"{key}{value}:{given['effect'] or 'every effect'}"

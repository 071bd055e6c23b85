from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import yaml

from rollouts.commands.documents.lengths import write_length
from rollouts.gates import GATES
from rollouts.gates.options import kinds_of, wire_name
from rollouts.lifecycle import PlanState
from rollouts.models import Plan, Stage


def write(plan: Plan) -> str:
    """Returns the plan as YAML; applying it yields the same draft."""
    return as_yaml(content_of(plan))


def as_yaml(content: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=1000, default_flow_style=False)


def content_of(plan: Plan) -> dict[str, Any]:
    """Returns the document's content with two queries. Of a plan that is no draft it describes a new plan."""
    identity = {"plan": plan.pk, "revision": plan.revision} if plan.state == PlanState.DRAFT else {}
    return identity | contents(plan, plan.stages.forward().select_related("pool"))


def contents(plan: Plan, stages: Any) -> dict[str, Any]:
    """Returns the content without the plan's number."""
    return {
        "cluster": plan.cluster.name,
        "object": {"kind": plan.object_kind, "name": plan.object_name},
        **({"from": plan.from_version} if plan.from_version else {}),
        "to": plan.to_version,
        "title": plan.title,
        **({"cordon_affected": True} if plan.cordon_affected else {}),
        "stages": [_stage(stage) for stage in stages],
    }


def _stage(stage: Stage) -> dict[str, Any]:
    said = {
        "name": stage.name,
        "kind": str(stage.kind),
        "pool": stage.pool.name if stage.pool else None,
        "selector": stage.selector or None,
        "count": stage.count,
        "max_unavailable": stage.max_unavailable,
        "timeout": write_length(stage.timeout_s),
        "sick_nodes_reason": stage.sick_nodes_reason or None,
        "gates": {key: _options(key, stage.gate_options[key]) for key in GATES if key in stage.gate_options},
    }
    return {key: value for key, value in said.items() if value is not None}


def gates_as_yaml(options: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the gates as a document writes them, in the order of the catalogue; blank without gates."""
    found = {key: _options(key, options[key]) for key in GATES if key in options}
    return as_yaml(found) if found else ""


def _options(key: str, kept: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options as people write them: `duration: 30m` for `duration_s: 1800`."""
    kinds = kinds_of(GATES[key])
    return {
        name: write_length(kept[wire]) if kind is timedelta else kept[wire]
        for name, kind in kinds.items()
        if (wire := wire_name(name, kind)) in kept
    }

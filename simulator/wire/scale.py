"""The scale subresource: `spec.replicas` of a workload under another name."""

from typing import Any

from simulator.kinds import Kind
from simulator.patches import patched
from simulator.store import Store
from simulator.wire.answers import Answer, of_json
from simulator.wire.asks import Ask
from simulator.wire.paths import Target
from simulator.wire.writing import PATCH_FORMS

SCALE = Kind("autoscaling", "v1", "scales", "Scale")
SCALED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def read(store: Store, kind: Kind, target: Target) -> Answer:
    return of_json(_scale(store.get(kind, target.name, target.namespace)))


def write(store: Store, ask: Ask, kind: Kind, target: Target) -> Answer:
    with store.lock:
        scale = _scale(store.get(kind, target.name, target.namespace))
        if ask.method == "PATCH":
            new = patched(SCALE, scale, ask.json(), how=PATCH_FORMS.get(ask.content_type, ""))
        else:
            new = ask.json()
        version = (new.get("metadata") or {}).get("resourceVersion")
        change: dict[str, Any] = {"spec": {"replicas": (new.get("spec") or {}).get("replicas", 0)}}
        if version:
            change["metadata"] = {"resourceVersion": version}
        changed = store.patch(kind, target.name, change, target.namespace, how="merge", dry_run=ask.is_dry_run)
    return of_json(_scale(changed))


def _scale(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: obj["metadata"][key] for key in SCALED if key in obj["metadata"]}
    labels = ((obj["spec"].get("selector") or {}).get("matchLabels")) or {}
    text = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    status = {"replicas": (obj.get("status") or {}).get("replicas", 0), "selector": text}
    spec = {"replicas": obj["spec"].get("replicas", 0)}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}

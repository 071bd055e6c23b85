"""What may not be stored: the few checks of the API server that a client of a GPU fleet can run into."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from simulator import definitions, quotas, schema, selectors
from simulator.etcd import Etcd
from simulator.kinds import DEFINITION, POD, Kind
from simulator.names import label_causes
from simulator.refusals import Cause, invalid

Obj = dict[str, Any]
QUANTITY = r"[0-9]+(\.[0-9]+)?([eE][0-9]+|m|k|M|G|T|Ki|Mi|Gi|Ti)?"
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def check(store: Etcd, kind: Kind, new: Obj, old: Obj | None) -> None:
    """:raises Refused: 422 with one cause for each complaint."""
    complaints = _custom_causes(store, kind, new) if kind.is_custom else CHECKS.get(kind.shelf, _nothing)(new, old)
    if kind.shelf == POD.shelf and old is None:
        quotas.admit(store, new, new["metadata"]["namespace"])
    causes = list(complaints)
    if causes:
        raise invalid(kind, new["metadata"]["name"], *causes)


def _nothing(_new: Obj, _old: Obj | None) -> Iterator[Cause]:
    yield from ()


def _custom_causes(store: Etcd, kind: Kind, new: Obj) -> Iterator[Cause]:
    record = store.shelf(DEFINITION).records.get(f"{kind.plural}.{kind.group}")
    if record is not None:
        yield from schema.causes(definitions.schema_of(record.obj, kind.version), new, "")


def _pod_causes(new: Obj, old: Obj | None) -> Iterator[Cause]:
    if not new["spec"].get("containers"):
        yield Cause("spec.containers", "Required value", "FieldValueRequired")
    if old is not None and _fixed(new["spec"]) != _fixed(old["spec"]):
        words = (
            "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
            "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
            "negative)"
        )
        yield Cause("spec", words, "FieldValueForbidden")


def _fixed(spec: Obj) -> Obj:
    free = {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"}
    fixed = {key: value for key, value in spec.items() if key not in free}
    for member in ("containers", "initContainers"):
        fixed[member] = [{**container, "image": ""} for container in spec.get(member) or []]
    return fixed


def _node_causes(new: Obj, _old: Obj | None) -> Iterator[Cause]:
    for index, taint in enumerate(new["spec"].get("taints") or []):
        if taint.get("effect") not in TAINT_EFFECTS:
            supported = ", ".join(f'"{effect}"' for effect in TAINT_EFFECTS)
            words = f'Unsupported value: "{taint.get("effect", "")}": supported values: {supported}'
            yield Cause(f"spec.taints[{index}].effect", words, "FieldValueNotSupported")


def _selecting_causes(new: Obj, old: Obj | None) -> Iterator[Cause]:
    spec = new["spec"]
    labels = (spec["template"]["metadata"].get("labels")) or {}
    yield from label_causes(labels, "spec.template.labels")
    wrong = list(_expression_causes(spec.get("selector")))
    yield from wrong
    if wrong:
        return
    selector = selectors.from_label_selector(spec.get("selector"))
    if selector is None:
        yield Cause("spec.selector", "Required value", "FieldValueRequired")
    elif not selector.matches(labels):
        words = f"Invalid value: {labels!r}: `selector` does not match template `labels`"
        yield Cause("spec.template.metadata.labels", words)
    if old is not None and old["spec"].get("selector") != spec.get("selector"):
        yield Cause("spec.selector", f"Invalid value: {spec.get('selector')!r}: field is immutable")
    if not spec["template"]["spec"].get("containers"):
        yield Cause("spec.template.spec.containers", "Required value", "FieldValueRequired")


def _expression_causes(selector: Obj | None) -> Iterator[Cause]:
    for index, expression in enumerate((selector or {}).get("matchExpressions") or []):
        field = f"spec.selector.matchExpressions[{index}]"
        if not expression.get("key"):
            yield Cause(f"{field}.key", "Required value", "FieldValueRequired")
        if expression.get("operator") not in selectors.EXPRESSIONS:
            yield Cause(
                f"{field}.operator", f'Invalid value: "{expression.get("operator", "")}": not a valid selector operator'
            )


def _amount_causes(field: str, amount: Any) -> Iterator[Cause]:
    if isinstance(amount, str) and not re.fullmatch(r"[0-9]+%", amount):
        words = (
            f'Invalid value: "{amount}": a valid percent string must be a numeric string followed by an ending '
            "'%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        )
        yield Cause(field, words)
    elif not isinstance(amount, int | str) or (isinstance(amount, int) and amount < 0):
        yield Cause(field, f"Invalid value: {amount}: must be greater than or equal to 0")


def _budget_causes(new: Obj, _old: Obj | None) -> Iterator[Cause]:
    yield from _expression_causes(new["spec"].get("selector"))
    for member in ("minAvailable", "maxUnavailable"):
        if member in new["spec"]:
            yield from _amount_causes(f"spec.{member}", new["spec"][member])
    if "minAvailable" in new["spec"] and "maxUnavailable" in new["spec"]:
        words = "Invalid value: minAvailable and maxUnavailable cannot be both set"
        yield Cause("spec", words)


def _quota_causes(new: Obj, _old: Obj | None) -> Iterator[Cause]:
    for resource, quantity in ((new.get("spec") or {}).get("hard") or {}).items():
        if not re.fullmatch(QUANTITY, str(quantity)):
            words = f'Invalid value: "{quantity}": must be a quantity greater than or equal to 0'
            yield Cause(f"spec.hard[{resource}]", words)


def _binding_causes(new: Obj, old: Obj | None) -> Iterator[Cause]:
    role = new.get("roleRef") or {}
    for member in ("kind", "name"):
        if not role.get(member):
            yield Cause(f"roleRef.{member}", "Required value", "FieldValueRequired")
    if old is not None and old.get("roleRef") != new.get("roleRef"):
        yield Cause("roleRef", f"Invalid value: {role!r}: cannot change roleRef")
    for index, subject in enumerate(new.get("subjects") or []):
        for member in ("kind", "name"):
            if not subject.get(member):
                yield Cause(f"subjects[{index}].{member}", "Required value", "FieldValueRequired")


def _revision_causes(new: Obj, old: Obj | None) -> Iterator[Cause]:
    """ValidateControllerRevisionCreate and -Update of k8s.io/kubernetes, pkg/apis/apps/validation."""
    data = new.get("data")
    if not isinstance(data, dict):
        because = "data is mandatory" if data is None else "data must be a valid JSON object"
        yield Cause("data", f"Required value: {because}", "FieldValueRequired")
    if old is not None and old.get("data") != data:
        yield Cause("data", f"Invalid value: {json.dumps(data, separators=(',', ':'))}: field is immutable")


def _definition_causes(new: Obj, _old: Obj | None) -> Iterator[Cause]:
    spec = new.get("spec") or {}
    names = spec.get("names") or {}
    missing = [f"spec.{member}" for member in ("group", "scope", "versions") if not spec.get(member)]
    missing += [f"spec.names.{member}" for member in ("plural", "kind") if not names.get(member)]
    for field in missing:
        yield Cause(field, "Required value", "FieldValueRequired")
    wanted = f"{names.get('plural')}.{spec.get('group')}"
    if not missing and new["metadata"]["name"] != wanted:
        yield Cause(
            "metadata.name", f'Invalid value: "{new["metadata"]["name"]}": must be spec.names.plural+"."+spec.group'
        )


CHECKS: Mapping[tuple[str, str], Callable[[Obj, Obj | None], Iterator[Cause]]] = {
    ("", "nodes"): _node_causes,
    ("", "pods"): _pod_causes,
    ("apps", "controllerrevisions"): _revision_causes,
    ("apps", "daemonsets"): _selecting_causes,
    ("apps", "deployments"): _selecting_causes,
    ("apps", "replicasets"): _selecting_causes,
    ("apps", "statefulsets"): _selecting_causes,
    ("apiextensions.k8s.io", "customresourcedefinitions"): _definition_causes,
    ("", "resourcequotas"): _quota_causes,
    ("policy", "poddisruptionbudgets"): _budget_causes,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _binding_causes,
    ("rbac.authorization.k8s.io", "rolebindings"): _binding_causes,
}

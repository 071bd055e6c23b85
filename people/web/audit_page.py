"""The page of decisions: who did what to which object, when and why, with a check of the hash chain."""

import json
import re
from dataclasses import dataclass

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from edges.requests import PersonRequest
from people.audit_trail import AuditFilters
from people.models import AuditEntry
from people.models.audit_entry import faults_among
from people.rights import NotAllowed, Permission, require

AT_ONCE = 50
LONGEST_EVIDENCE = 4000  # characters; a seal of a large plan is longer
MARK = re.compile(r"(?P<kind>[a-z-]+?)[:-](?P<key>[0-9]+)")
# The kinds of objects with decisions, and the name of the page of one, where there is one.
PAGES = {
    "plan": "plan", "operation": "operation", "case": "case", "finding": "", "mute": "", "rule": "", "limits": "",
    "freeze": "", "window": "", "domain-budget": "", "automatic-quarantine": "automatic-quarantine",
    "new-node-gate": "new-node-gate",
    "cluster": "cluster", "pool": "pool", "node": "node",
    "channel": "channel", "route": "route", "person": "person", "group": "", "mapping": "", "token": "", "device": "",
    "pod": "", "prices": "", "repair-receiver": "",
}  # fmt: skip


@dataclass(frozen=True)
class AuditRow:
    entry: AuditEntry
    href: str  # blank: the object has no page
    evidence: str  # JSON; blank: none
    fault: str  # blank: the entry and its link to the entry before it are intact


@never_cache
@require_GET
def audit(request: PersonRequest) -> HttpResponse:
    try:
        require(request.user, Permission.ADMINISTER)
    except NotAllowed as refusal:
        raise PermissionDenied(str(refusal)) from refusal
    asked = AuditFilters(request.GET, AuditEntry.objects.order_by("-pk"))
    is_valid = asked.is_valid()
    entries = list(asked.qs[: AT_ONCE + 1]) if is_valid else []
    shown, faults = entries[:AT_ONCE], faults_among(entries[:AT_ONCE])
    context = {
        "form": asked.form,
        "kinds": PAGES,
        "rows": [_row_of(entry, faults.get(entry.pk, "")) for entry in shown],
        "faults": len(faults),
        "verified_at": timezone.now(),
        "older_than": shown[-1].pk if len(entries) > AT_ONCE else None,
        "is_filtered": any(request.GET.values()),
    }
    return render(request, "people/audit/page.html", context, status=200 if is_valid else 400)


def _row_of(entry: AuditEntry, fault: str) -> AuditRow:
    evidence = json.dumps(entry.evidence, indent=1, ensure_ascii=False) if entry.evidence else ""
    if len(evidence) > LONGEST_EVIDENCE:
        evidence = f"{evidence[:LONGEST_EVIDENCE]}\n… {len(evidence)} characters, all of them in the file"
    return AuditRow(entry, _page_of(entry.subject), evidence, fault)


def _page_of(subject: str) -> str:
    mark = MARK.fullmatch(subject)
    try:
        return reverse(PAGES[mark["kind"]], args=[mark["key"]]) if mark and PAGES.get(mark["kind"]) else ""
    except NoReverseMatch:
        return ""

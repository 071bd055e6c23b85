"""The one table of what reads text that people, browsers and programs send us, with the bound of each.

A module that takes text out of a request and is not named here fails `test_people_text`.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import msgspec
import yaml
from django.core.exceptions import TooManyFieldsSent, ValidationError
from django.forms import JSONField
from django.http import HttpRequest, QueryDict, parse_cookie
from django.utils import timezone
from django.utils.http import parse_etags
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from capacity.api.free_gpus import FreeGpuHistoryAsked
from capacity.api.namespaces import PodWorkloadsAsked
from capacity.api.tenant_matrix import TenantMatrixAsked
from capacity.api.usage import UsageAsked
from capacity.pods.pod_filter import PodFilter
from capacity.usage.usage_filter import BadPeriod, UsageFilter
from capacity.web.prices_page import PriceForm
from capacity.web.service_level_page import ServiceLevelForm
from config import request_id
from config.nul import NulCharacter, RefuseNul
from edges.digits import whole_number
from edges.documents import LARGEST_BYTES
from edges.kept_input import WhyForm
from edges.pagination import Pages
from edges.request_parsers import LARGEST_BODY_BYTES, SmallJSONParser
from edges.requests import PersonRequest
from edges.rest import Edge
from fleet.api.filters import NodeFilters, PodFilters
from fleet.api.node_history import TimelineAsked
from fleet.models import Cluster, DomainEvent, Node, Pod
from fleet.models.pool import LABEL_KEY
from fleet.pools.files import BadPoolFile
from fleet.pools.files import parse_pool_file as read_pool_file
from fleet.web.cluster_commands import AcceptForm, ApprovalForm
from fleet.web.filters import NodeFilter, read_choice
from fleet.web.node_history import HistoryForm
from fleet.web.pool_form import PoolForm
from gpu import versions
from health.api.gpus import GpuHealthAsked
from health.api.hours import HoursAsked
from health.api.shift_report import ShiftReportAsked
from health.api.telemetry_history import HistoryAsked
from health.gpus.gpu_filter import GpuFilter
from health.gpus.views import GPU_VIEWS
from health.models import Finding
from health.saved_views import BadView
from health.telemetry.promql import BadMatchers, Matchers
from health.web.act_form import ActForm, MuteForm
from health.web.inbox_page import Filter as FindingsFilter
from health.web.rule_page import LimitsForm
from health.web.shift_report import ReportForm
from health.web.telemetry_form import TelemetrySourceForm
from kube import quantity, selectors
from kube.selectors import BadSelector
from maintenance.web.automatic_page import ModeForm, RuleForm, SwitchesForm
from maintenance.web.case_page import AnswerForm, CaseActForm, NewCaseForm, RepairForm, ValidationForm
from maintenance.web.new_nodes_page import NewNodeGateForm
from maintenance.web.receivers_page import ReceiverForm
from notifications.events import EventPageFilters, EventView
from notifications.web.channel_page import ChannelForm
from notifications.web.notifications_page import LogForm
from notifications.web.pagerduty_events import DECODER as PAGERDUTY_EVENTS
from notifications.web.preferences_page import PreferenceForm
from notifications.web.route_page import RouteForm
from operations.web.operation_page import OperationForm
from people.api.device_authorizations import DeviceRequest, DeviceTokenRequest
from people.api.group_mappings import GroupMappingRequest
from people.api.people import NewPerson, RoleRequest
from people.api.session import SessionRequest
from people.api.tokens import TokenRequest
from people.audit_trail import AuditFilters
from people.models import AuditEntry, User
from people.models.api_token import key_id_in, plain_digest_of
from people.models.device_authorization import normalized_user_code
from people.sign_in.addresses import client_address
from people.sign_in.second_factor import LONGEST_CREDENTIAL
from people.sign_in.session_store import browser_of
from people.web.account import TokenForm
from people.web.return_pages import form_page
from people.web.roster_forms import GroupForm, GroupMappingForm, PersonForm, RoleForm
from rollouts.api.gate_reviews import GateTrialAsked
from rollouts.api.plan_serializers import PlanRequest
from rollouts.commands.documents import parse_gates
from rollouts.commands.documents import parse_plan_document as read_plan_document
from rollouts.commands.domain_budgets import LONGEST_LABEL
from rollouts.commands.refusals import BadPlan
from rollouts.components.driver import is_version
from rollouts.gates import GATES
from rollouts.gates.options import BadGate, kinds_of, read_gates, wire_name
from rollouts.web.break_glass import OverrideForm
from rollouts.web.command_forms import CompleteForm, DecisionForm, PullForm, RehearsalForm, ResumeForm, StartForm
from rollouts.web.draft_form import DraftForm
from rollouts.web.freezes_page import FreezeForm
from rollouts.web.gate_reviews import GateForm, TrialForm
from rollouts.web.ledger_page import BudgetForm
from rollouts.web.pool_gates import GatesForm
from rollouts.web.window_form import WindowForm
from rollouts.windows.rules import BadWindow, read_rule

REFUSALS = (
    APIException,
    BadWindow,
    BadGate,
    BadMatchers,
    BadPlan,
    BadPoolFile,
    BadSelector,
    BadView,
    NulCharacter,
    TooManyFieldsSent,
    ValidationError,
    yaml.YAMLError,
)
HEADERS_BYTES = 65_536  # what uvicorn takes of headers; of the first line `config.server` takes less
FORM_BYTES = 2_621_440  # Django's DATA_UPLOAD_MAX_MEMORY_SIZE


@dataclass(frozen=True)
class Parser:
    name: str
    bound: str  # what it is held to before it is read
    longest: int  # characters that may reach it
    parse: Callable[[str], Any]
    read_in: tuple[str, ...] = ()  # the modules that hand it what a request carries

    def read(self, text: str) -> None:
        with suppress(*REFUSALS):  # a refusal is an answer: what matters here is what it cost
            self.parse(text)


def _query(**given: str) -> QueryDict:
    query = QueryDict(mutable=True)
    query.update(given)
    return query


def _json(text: str) -> Any:
    return SmallJSONParser().parse(BytesIO(text.encode("utf-8", "replace")))


def _shape(shape: type) -> Callable[[str], Any]:
    return lambda text: shape(data=_json(text)).is_valid()


def _fields(shape: type, *names: str) -> Callable[[str], Any]:
    return lambda text: shape(data=dict.fromkeys(names, text)).is_valid()


def _stage(text: str) -> None:
    names = ("name", "kind", "pool", "selector", "count", "max_unavailable", "timeout_min", "approvals", "groups",
             "soak_min", "tolerate", "gates", "options")  # fmt: skip
    given = {f"stage-0-{name}": text for name in names}
    counts = {"stage-TOTAL_FORMS": text, "stage-INITIAL_FORMS": text}
    DraftForm(_query(revision=text, title=text, to_version=text, **counts, **given)).stages()


def _trial_form(text: str) -> None:
    for gate in GATES.values():
        names = [wire_name(name, kind) for name, kind in kinds_of(gate).items()]
        TrialForm(gate, _query(**{f"option-{name}": text for name in names})).is_valid()


def _findings_filter(text: str) -> None:
    request = PersonRequest()
    request.GET = _query(cluster=text, severity=text, rule=text, together=text)
    FindingsFilter.read(request)


def _view(text: str) -> None:
    GPU_VIEWS.filter_sent(text)
    GPU_VIEWS.spelt(name=text, query=text)


def _freeze(text: str) -> None:
    asked = _query(on=text, until=text, reason=text, binds_rollbacks=text)
    FreezeForm(asked, user=User(), places=[], now=timezone.now()).is_valid()


def _window(text: str) -> None:
    names = ("on", "rule", "first_day", "opens_at", "zone", "hours", "minutes", "reason")
    WindowForm(_query(**dict.fromkeys(names, text)), user=User(), places=[], now=timezone.now()).is_valid()


def _page(text: str) -> Any:
    request = Request(APIRequestFactory().get("/"))
    request._request.GET = _query(limit=text, offset=text)
    return Pages().get_limit(request), Pages().get_offset(request)


def _key(text: str) -> str:
    edge = Edge()
    edge.request = APIRequestFactory().post("/")
    edge.request.META["HTTP_IDEMPOTENCY_KEY"] = text
    return edge.key()


def _header(text: str) -> str:
    """As a server hands it over: whatever the bytes are, as Latin-1."""
    return text.encode("utf-8", "replace").decode("latin-1")


def _came_from(text: str) -> Any:
    return form_page(APIRequestFactory().post("/", headers={"Referer": _header(text)}))


def _forwarded(text: str) -> str:
    return client_address(APIRequestFactory().get("/", headers={"X-Forwarded-For": _header(text)}))


def _browser(text: str) -> str:
    return browser_of(APIRequestFactory().get("/", headers={"User-Agent": _header(text)}))


def _role(text: str) -> None:
    RoleForm(_query(role=text, place=text), places=()).is_valid()


def _passkey(text: str) -> None:
    with suppress(ValidationError, ValueError, RecursionError):
        JSONField().clean(text[:LONGEST_CREDENTIAL])


def _mapping(text: str) -> None:
    GroupMappingForm(_query(group=text, role=text, place=text), places=()).is_valid()


def _mute(text: str) -> None:
    asked = _query(**dict.fromkeys(("scope", "hours", "reason", "key"), text))
    MuteForm(asked, finding=Finding(cluster=Cluster()), user=User()).is_valid()


def _nul(text: str) -> None:
    request = HttpRequest()
    request.GET, request.COOKIES, request.path_info = _query(q=text), parse_cookie(f"a={text}"), text
    RefuseNul(lambda _: None)(request)  # type: ignore[arg-type, return-value]


def _usage_days(text: str) -> None:
    with suppress(BadPeriod):
        UsageFilter.read(_query(period="own", first=text, last=text))


def _pagerduty_event(text: str) -> object:
    with suppress(msgspec.MsgspecError, RecursionError):
        return PAGERDUTY_EVENTS.decode(text.encode(errors="replace"))
    return None


def _gates(text: str) -> object:
    with suppress(BadPlan):
        return parse_gates(text)
    return None


PARSERS = (
    Parser("label selector", "1,000 characters, 50 requirements", 200_000, selectors.parse),
    Parser("pool file", "64 KiB, 4,000 YAML events, 20 deep, no aliases, 200 pools", FORM_BYTES, read_pool_file,
           ("fleet.web.pool_file_page",)),
    Parser("pool file, at its bound", "the same", LARGEST_BYTES, read_pool_file),
    Parser("plan document", "64 KiB, 4,000 YAML events, 20 deep, no aliases, 50 stages", FORM_BYTES, read_plan_document,
           ("rollouts.api.documents", "rollouts.web.document_page")),
    Parser("plan document, at its bound", "the same", LARGEST_BYTES, read_plan_document),
    Parser("pool form", "its columns' lengths", FORM_BYTES,
           _fields(PoolForm, "name", "selector", "environment", "workload_class", "max_unavailable",
                   "price_per_gpu_hour", "placement_policy", "training_placement", "inference_placement",
                   "development_placement", "spread_label", "test_images", "test_claim_template",
                   "test_worse_percent"), ("fleet.web.pool_form",)),
    Parser("price of a GPU-hour", "its columns' lengths", FORM_BYTES,
           _fields(PriceForm, "amount", "currency", "valid_from", "source"), ("capacity.web.prices_page",)),
    Parser("service level of a pool", "1,000 characters, 10 selectors", FORM_BYTES,
           _fields(ServiceLevelForm, "indicator", "expression", "samples", "unit", "is_higher_better"),
           ("capacity.web.service_level_page",)),
    Parser("source of telemetry", "its columns' lengths", FORM_BYTES,
           _fields(TelemetrySourceForm, "url", "matchers", "user", "secret_from", "ca_file", "is_on"),
           ("health.web.telemetry_form", "health.web.telemetry_trial")),
    Parser("channel of notifications", "its columns' lengths", FORM_BYTES,
           _fields(ChannelForm, "name", "kind", "address", "secret_from", "ca_file", "recipients", "zone"),
           ("notifications.web.channel_page",)),
    Parser("preferences of a person", "254 characters", FORM_BYTES,
           _fields(PreferenceForm, "mail", "slack_id", "teams_id", "zone"), ("notifications.web.preferences_page",)),
    Parser("filter of deliveries", "63 characters, the states there are", HEADERS_BYTES,
           _fields(LogForm, "state", "channel"), ("notifications.web.notifications_page",)),
    Parser("name of a route, of a list that Django compares with what there is", "100 characters", FORM_BYTES,
           RouteForm.base_fields["name"].clean, ("notifications.web.route_page",)),
    Parser("limits of a pool", "numbers, and 1,000 characters", FORM_BYTES,
           _fields(LimitsForm, "pool", "version", "warn", "critical", "warn_after_s", "critical_after_s", "reason"),
           ("health.web.rule_page",)),
    Parser("window of a history, and since when", "those there are, and Django's own numbers", HEADERS_BYTES,
           lambda text: HistoryAsked(data={"window": text, "since": text, text[:100]: text}).is_valid(),
           ("health.api.telemetry_history",)),
    Parser("moment of a history", "40 characters", HEADERS_BYTES,
           lambda text: HistoryForm(_query(at=text, before=text, below=text)).is_valid(), ("fleet.web.node_history",)),
    Parser("moment and kinds of a history, in REST", "those there are, and Django's own instants", HEADERS_BYTES,
           lambda text: TimelineAsked(data={"kind": [text], "since": text, "before": text, "below": text}).is_valid(),
           ("fleet.api.node_history",)),
    Parser("number of hours", "3 digits", HEADERS_BYTES,
           lambda text: HoursAsked(data={"hours": text, text[:100]: text}).is_valid(), ("health.api.hours",)),
    Parser("hours of a shift report", "those there are", HEADERS_BYTES, _fields(ReportForm, "hours"),
           ("health.web.shift_report",)),
    Parser("hours of a shift report, in REST", "those there are", HEADERS_BYTES,
           lambda text: ShiftReportAsked(data={"hours": text, text[:100]: text}).is_valid(),
           ("health.api.shift_report",)),
    Parser("label matchers", "500 characters, 10 matchers", FORM_BYTES, Matchers.read),
    Parser("filter of nodes on a page", "200 characters each", HEADERS_BYTES,
           lambda text: NodeFilter.read(_query(q=text, pool=text, state=text)).is_selector,
           ("fleet.web.fleet_page",)),
    Parser("choice of facets", "50 values of 253 characters each", HEADERS_BYTES,
           lambda text: read_choice(_query(product=text, zone=text)),
           ("fleet.web.segments_page", "fleet.api.segments", "fleet.web.pool_form")),
    Parser("filter of GPUs", "253 characters each, the columns there are", HEADERS_BYTES,
           lambda text: GpuFilter.read(
               _query(q=text, pool=text, ordering=text, column=text, metric=text, reading=text, at_least=text)
           ).query(),
           ("health.web.gpus_page", "health.web.gpus_page")),
    Parser("filter of pods", "253 characters each, a workload 320", HEADERS_BYTES,
           lambda text: PodFilter.read(
               _query(q=text, pool=text, state=text, resource=text, ordering=text, by=text, owner=text)
           ).query(),
           ("capacity.web.pods_page",)),
    Parser("filter of workloads in REST", "253 characters each, a workload 320", HEADERS_BYTES,
           lambda text: PodWorkloadsAsked(data={"q": text, "owner": text, "limit": text, text[:100]: text}).is_valid(),
           ("capacity.api.namespaces",)),
    Parser("period and filter of usage", "320 characters each, days of 10", HEADERS_BYTES,
           lambda text: UsageFilter.read(
               _query(period=text, by=text, pool=text, namespace=text, workload=text, ordering=text)
           ).query(),
           ("capacity.web.usage_page",)),
    Parser("days of usage", "10 characters each", HEADERS_BYTES, _usage_days),
    Parser("period and filter of usage in REST", "253 characters each", HEADERS_BYTES,
           lambda text: UsageAsked(
               data={"period": text, "first": text, "pool": text, "limit": text, text[:100]: text}
           ).is_valid(), ("capacity.api.usage",)),
    Parser("node behind which a matrix goes on, in REST", "253 characters", HEADERS_BYTES,
           lambda text: TenantMatrixAsked(data={"after": text, text[:100]: text}).is_valid(),
           ("capacity.api.tenant_matrix",)),
    Parser("days of free GPUs in REST", "a number from 1 to 90", HEADERS_BYTES,
           lambda text: FreeGpuHistoryAsked(data={"days": text, text[:100]: text}).is_valid(),
           ("capacity.api.free_gpus",)),
    Parser("filter of GPUs in REST", "253 characters each", HEADERS_BYTES,
           lambda text: GpuHealthAsked(
               data={"q": text, "limit": text, "at_least": text, "column": [text], text[:100]: text}
           ).is_valid(), ("health.api.gpus",)),
    Parser("saved view", "60 and 2,000 characters, a filter 32,000", FORM_BYTES, _view, ("health.web.saved_views",)),
    Parser("layout of the map, and a cluster of it", "64 characters, compared, and 18", HEADERS_BYTES,
           lambda text: (text[:64] == "x", whole_number(text)), ("health.web.map_metrics",)),
    Parser("filters of nodes in REST", "253 characters each, a selector 1,000", HEADERS_BYTES,
           lambda text: NodeFilters(_query(selector=text, search=text, ordering=text, is_ready=text),
                                    Node.objects.none()).is_valid(), ("edges.filters",)),
    Parser("filters of pods in REST", "253 characters each", HEADERS_BYTES,
           lambda text: PodFilters(_query(name=text, phase=text, ordering=text), Pod.objects.none()).is_valid()),
    Parser("filters of the audit trail", "150 characters each", HEADERS_BYTES,
           lambda text: AuditFilters(
               _query(actor=text, subject=text, kind=text, verb=text, since=text, until=text, after=text, before=text),
               AuditEntry.objects.none(),
           ).is_valid(), ("people.web.audit_page",)),
    Parser("filters of events", "253 characters each, a time 40", HEADERS_BYTES,
           lambda text: (EventPageFilters(
               _query(cluster=text, pool=text, kind=text, severity=text, object=text, hours=text, since=text,
                      until=text, before=text), DomainEvent.objects.none(),
           ).is_valid(), EventView.read(_query(object=text, since=text)).query()),
           ("notifications.web.events_page",)),
    Parser("limit and offset", "8 digits", HEADERS_BYTES, _page, ("edges.pagination",)),
    Parser("key in an address or hidden field", "18 digits", HEADERS_BYTES, whole_number,
           ("rollouts.web.plan_commands", "rollouts.web.draft_page", "fleet.live.consumer")),
    Parser("version of a driver", "64 characters", FORM_BYTES, is_version),
    Parser("version", "a column's 64 characters", 1_000, versions.parse_version),
    Parser("quantity", "64 characters", FORM_BYTES, quantity.whole_quantity),
    Parser("quantity, rounded up", "64 characters", FORM_BYTES, quantity.rounded_up),
    Parser("JSON body", "1 MiB, 10,000 values, 20 deep", LARGEST_BODY_BYTES, _json, ("edges.rest",)),
    Parser("JSON body of a plan", "the same; 50 stages", LARGEST_BODY_BYTES, _shape(PlanRequest)),
    Parser("fields of a plan", "each its length", LARGEST_BODY_BYTES // 4,
           _fields(PlanRequest, "driver_object", "title", "to_version", "stages")),
    Parser("gate options", "those there are", LARGEST_BODY_BYTES // 4,
           lambda text: read_gates({"soak": {"duration_s": text}, text: {}})),
    Parser("draft form", "100 stages, 1,000 characters each field, 9 digits", FORM_BYTES // 12, _stage,
           ("rollouts.web.draft_page",)),
    Parser("token request", "100 characters, the permissions there are", LARGEST_BODY_BYTES // 4,
           _fields(TokenRequest, "name", "permissions", "expires_at")),
    Parser("token form", "100 characters", FORM_BYTES, _fields(TokenForm, "name", "days"), ("people.web.account",)),
    Parser("name and password", "150 and 4,096 characters", LARGEST_BODY_BYTES // 4,
           _fields(SessionRequest, "username", "password"), ("people.web.sessions",)),
    Parser("code of a terminal", "20 characters", FORM_BYTES, lambda text: normalized_user_code(text[:20]),
           ("people.web.device_page",)),
    Parser("client that asks for a code", "60 characters", LARGEST_BODY_BYTES // 4, _fields(DeviceRequest, "client")),
    Parser("device code", "100 characters, its digest is looked up", LARGEST_BODY_BYTES // 4,
           _fields(DeviceTokenRequest, "device_code")),
    Parser("answer of a passkey", "20,000 characters", FORM_BYTES, _passkey, ("people.web.second_factor",)),
    Parser("bearer token", "its key id or its digest is looked up", HEADERS_BYTES,
           lambda text: (key_id_in(_header(text)), plain_digest_of(_header(text))), ("people.api.authentication",)),
    Parser("X-Forwarded-For", "20 hops of 64 characters, from our proxies only", HEADERS_BYTES, _forwarded,
           ("people.sign_in.addresses",)),
    Parser("answer of an identity provider", "compared, 100 characters shown", HEADERS_BYTES,
           lambda text: ({}.get(text), text[:100]),
           ("people.web.single_sign_on", "people.sign_in.single_sign_on", "people.web.step_up")),
    Parser("event of PagerDuty", "bytes that its signature must match first", LARGEST_BODY_BYTES // 4, _pagerduty_event,
           ("notifications.web.pagerduty_events",)),
    Parser("User-Agent", "headers", HEADERS_BYTES, _browser, ("people.sign_in.session_store",)),
    Parser("Referer", "headers", HEADERS_BYTES, _came_from, ("people.web.return_pages",)),
    Parser("Idempotency-Key", "100 printable ASCII characters", HEADERS_BYTES, _key),
    Parser("X-Request-ID", "64 characters of a few kinds", HEADERS_BYTES, request_id.SANE.fullmatch,
           ("config.request_id",)),
    Parser("If-Match", "headers, 16 characters compared", HEADERS_BYTES, parse_etags, ("config.errors",)),
    Parser("If-None-Match", "headers", HEADERS_BYTES, parse_etags, ("edges.parts",)),
    Parser("Accept-Encoding", "headers", HEADERS_BYTES, lambda text: "gzip" in text, ("edges.parts",)),
    Parser("NUL in address, query, cookie", "headers", HEADERS_BYTES, _nul, ("config.nul",)),
    Parser("reason of a form", "cut at 1,000 characters", FORM_BYTES, lambda text: text.strip()[:1000],
           ("edges.requests",)),
    Parser("why, of a dialog", "1,000 and 100 characters", FORM_BYTES, _fields(WhyForm, "reason", "key"),
           ("edges.kept_input", "rollouts.web.fleet_stop")),
    Parser("a plan is started", "18 digits, 1,000 and 100 characters", FORM_BYTES,
           _fields(StartForm, "reason", "key", "revision", "override_reason"), ("rollouts.web.plan_commands",)),
    Parser("a plan goes on", "1,000, 100 and 16 characters", FORM_BYTES,
           _fields(ResumeForm, "reason", "key", "expected_state")),
    Parser("a plan is completed", "1,000 and 100 characters; compared", FORM_BYTES,
           _fields(CompleteForm, "reason", "key", "seen")),
    Parser("images to be pulled", "1,000 and 100 characters, 18 digits", FORM_BYTES,
           _fields(PullForm, "reason", "key", "nodes_each"), ("rollouts.web.image_pulls",)),
    Parser("fault and seed of a rehearsal", "the faults there are, and Django's own numbers", FORM_BYTES,
           _fields(RehearsalForm, "fault", "seed"), ("rollouts.web.rehearsals",)),
    Parser("gate for a new draft", "the gates there are", FORM_BYTES, _fields(GateForm, "gate"),
           ("rollouts.web.gate_reviews",)),
    Parser("options of a tried gate", "1,000 characters, 9 digits", HEADERS_BYTES, _trial_form),
    Parser("options of a tried gate, in REST", "4,000 characters", HEADERS_BYTES,
           lambda text: GateTrialAsked(data={"gate": text, "options": text}).is_valid(),
           ("rollouts.api.gate_reviews",)),
    Parser("cluster that was rebuilt", "64 and 1,000 characters", FORM_BYTES,
           _fields(AcceptForm, "uid", "reason"), ("fleet.web.cluster_commands",)),
    Parser("whether a cluster asks", "the rules there are, 1,000 characters", FORM_BYTES,
           _fields(ApprovalForm, "approval", "reason")),
    Parser("decision on a stage", "the two there are, 64 and 1,000 characters", FORM_BYTES,
           _fields(DecisionForm, "decision", "bundle_hash", "reason"), ("rollouts.web.approval_page",)),
    Parser("breaking override", "18 digits, 1,000 characters, compared", FORM_BYTES,
           _fields(OverrideForm, "reason", "hours", "confirm"), ("rollouts.web.break_glass",)),
    Parser("budget of failure domains", "18 digits, 1,000 characters, compared", FORM_BYTES,
           _fields(BudgetForm, "kind", "max_unavailable", "label", "reason"), ("rollouts.web.ledger_page",)),
    Parser("label that names racks", "317 characters", FORM_BYTES,
           lambda text: LABEL_KEY.fullmatch(text[:LONGEST_LABEL])),
    Parser("filter of findings on a page", "63 characters each, 18 digits", HEADERS_BYTES, _findings_filter,
           ("health.web.inbox_page",)),
    Parser("act on a finding", "1,000, 150 and 100 characters", FORM_BYTES,
           _fields(ActForm, "to", "reason", "seen", "key"), ("health.web.acts",)),
    Parser("mute of a rule", "1,000, 100 and 40 characters", FORM_BYTES, _mute),
    Parser("operation form", "1,000 and 100 characters, numbers of a few digits", FORM_BYTES,
           _fields(OperationForm, "reason", "typed_count", "deadline_min", "jobs_wait_min", "at_once", "key", "test",
                   "image", "command", "pool", "pod", "pod_uid", "budget", "finding", "seen", "seen_at"),
           ("operations.web.operation_page",)),
    Parser("case form", "16 digits and 1,000 characters", FORM_BYTES,
           _fields(NewCaseForm, "node", "finding", "reason"), ("maintenance.web.case_page",)),
    Parser("act on a case", "1,000 and 64 characters", FORM_BYTES, _fields(CaseActForm, "reason", "seen")),
    Parser("repair of a case", "1,000 and 500 characters, 3 digits", FORM_BYTES,
           _fields(RepairForm, "reason", "seen", "by", "kind", "link", "deadline_h")),
    Parser("answer to a repair", "1,000, 500 and 100 characters", FORM_BYTES,
           _fields(AnswerForm, "reason", "seen", "answer", "ticket", "link")),
    Parser("receiver of repairs", "18 digits and 300 characters", FORM_BYTES,
           _fields(ReceiverForm, "cluster", "pool", "address", "secret_from", "ca_file"),
           ("maintenance.web.receivers_page",)),
    Parser("validation of a case", "1,000, 500 and 100 characters", FORM_BYTES,
           _fields(ValidationForm, "reason", "seen", "result", "test", "link")),
    Parser("mode of automatic quarantine", "the modes there are and 1,000 characters", FORM_BYTES,
           _fields(ModeForm, "mode", "reason"), ("maintenance.web.automatic_page",)),
    Parser("rule of automatic quarantine", "the rules and modes there are, and 1,000 characters", FORM_BYTES,
           _fields(RuleForm, "rule", "mode", "reason"), ("maintenance.web.automatic_page",)),
    Parser("switches of automatic drains and repairs", "the actors there are and 1,000 characters", FORM_BYTES,
           _fields(SwitchesForm, "drain", "repair", "reason"), ("maintenance.web.automatic_page",)),
    Parser("gate of new nodes", "6,440 and 1,000 characters", FORM_BYTES,
           _fields(NewNodeGateForm, "is_on", "test", "labels", "taints", "needs_person", "seen", "reason"),
           ("maintenance.web.new_nodes_page",)),
    Parser("freeze form", "40, 32 and 1,000 characters", FORM_BYTES, _freeze,
           ("rollouts.web.freezes_page",)),
    Parser("gates of a pool", "65,536, 1,000 and 16 characters", FORM_BYTES,
           _fields(GatesForm, "text", "reason", "seen"), ("rollouts.web.pool_gates",)),
    Parser("gates as YAML", "64 KiB, as a plan document", FORM_BYTES, _gates),
    Parser("window form", "200, 64 and 1,000 characters", FORM_BYTES, _window,
           ("rollouts.web.windows_page",)),
    Parser("recurrence rule", "200 characters", FORM_BYTES, read_rule),
    Parser("somebody new, in REST", "150 characters", LARGEST_BODY_BYTES // 4, _fields(NewPerson, "username")),
    Parser("role, in REST", "the roles and scopes there are", LARGEST_BODY_BYTES // 4,
           _fields(RoleRequest, "role", "scope", "scope_id")),
    Parser("group mapping in REST", "255 characters", LARGEST_BODY_BYTES // 4, _fields(GroupMappingRequest, "group")),
    Parser("group mapping", "255 characters", FORM_BYTES, _mapping, ("people.web.group_mappings_page",)),
    Parser("name of a group", "63 characters", FORM_BYTES, _fields(GroupForm, "name"), ("people.web.groups_page",)),
    Parser("name of somebody new", "150 characters", FORM_BYTES, _fields(PersonForm, "name"),
           ("people.web.people_page",)),
    Parser("role of somebody", "the roles and places there are", FORM_BYTES, _role),
    Parser("page of a list", "Django's Paginator", HEADERS_BYTES, lambda text: text.isdigit(),
           ("rollouts.web.plans_page", "rollouts.web.external_rollouts_page", "edges.templatetags.page",
            "health.api.findings", "rollouts.web.plan_page")),
)  # fmt: skip

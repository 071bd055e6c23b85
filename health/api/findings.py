from collections.abc import Sequence
from datetime import datetime
from typing import Any

import django_filters as filters
from django.http import Http404
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Edge, EvidenceItemSerializer, Listing, RowSerializer
from fleet.api.filters import Text, YesNo, ordering
from fleet.api.nodes import EventSerializer
from fleet.api.serializers import RefSerializer
from fleet.models import Pool
from health.api.mutes import MOST_KEY, MuteSerializer
from health.api.suspects import SuspectsSerializer
from health.api.telemetry_history import SinceAsked, TelemetryHistorySerializer, asked_in, visible_history
from health.inbox.finding_groups import described_groups
from health.inbox.last_seen import dated
from health.inbox.markdown import as_markdown
from health.inbox.plots import is_plotted, plots_of
from health.inbox.queries import MOST_ALIKE, MOST_AROUND, as_seen_by, detail_of, impacts_of
from health.lifecycle import FindingState
from health.models import Finding, FindingAct
from health.models.finding import SEVERITIES, STATES
from wording.reports import LONGEST_SUMMARY, LONGEST_TITLE


class FindingFilters(filters.FilterSet):
    cluster = Text(field_name="cluster__name", label="Name of the cluster.")
    pool = filters.NumberFilter(
        method="filter_pool", label="Id of a pool: findings about its nodes.",
        min_value=1, max_value=MOST_KEY, decimal_places=0,
    )  # fmt: skip
    node = filters.NumberFilter(label="Node id.", min_value=1, max_value=MOST_KEY, decimal_places=0)
    rule = Text()
    severity = filters.ChoiceFilter(choices=SEVERITIES)
    state = filters.ChoiceFilter(choices=STATES)
    assigned_to = Text(label="User name of the assignee.")
    is_on_its_own = YesNo(method="filter_own", label="Findings that are not listed under another finding.")
    confirming = YesNo(
        method="filter_confirming",
        label="true: only findings that are not confirmed yet. Default: only confirmed findings.",
    )
    is_shadow = YesNo(
        method="filter_shadow",
        label="true: only findings of rules in shadow mode. Default: only findings of the other rules.",
    )
    open = YesNo(field_name="resolved_at", lookup_expr="isnull", label="Findings that are not resolved.")
    ordering = ordering("opened_at", "resolved_at")

    def filter_pool(self, rows, _name, value):
        pool = Pool.objects.visible_to(self.request.user).filter(pk=value)
        return rows.filter(rows.in_pools(pool.values("pk")))

    def filter_own(self, rows, _name, value):
        own = Finding.objects.without_visible_cause(self.request.user).values("pk")
        return rows.filter(pk__in=own) if value else rows.exclude(pk__in=own)

    def filter_shadow(self, rows, _name, value):
        return rows.filter(is_shadow=value)

    def filter_confirming(self, rows, _name, value):
        return rows.filter(state=FindingState.CONFIRMING) if value else rows.filter(opened_at__isnull=False)


class ImpactSerializer(serializers.Serializer):
    """The impact of a finding: the affected pods with GPUs."""

    is_known = serializers.BooleanField(help_text="False: the pods there were never read.")
    is_one_of = serializers.BooleanField(help_text="It is unknown which of the pods uses the GPU.")
    pods = serializers.IntegerField()
    jobs = serializers.IntegerField(help_text="Number of owners of these pods. A pod without an owner counts as one.")
    gpus = serializers.IntegerField(help_text="Number of whole GPUs that these pods use.")
    uncounted_pods = serializers.IntegerField(source="uncounted", help_text="Pods that use slices, shares or claims.")
    perhaps_pods = serializers.IntegerField(
        source="perhaps",
        help_text="For a partitioned GPU: other pods with parts of GPUs of this node, on unknown GPUs.",
    )
    names = serializers.ListField(child=serializers.CharField(), help_text="Namespace and name of the first few pods.")
    seen_until = serializers.DateTimeField(
        allow_null=True, help_text="Time of the last observation of the pods there. Null: live, or never observed."
    )
    namespaces = serializers.ListField(child=serializers.CharField())
    sentence = serializers.CharField()


class FindingSerializer(RowSerializer):
    cluster = RefSerializer()
    node = RefSerializer(
        allow_null=True, help_text="Null: the finding is about the cluster or Quarterdeck, or the node is gone."
    )
    title = serializers.CharField(help_text=f"The title with the object's name. At most {LONGEST_TITLE} characters.")
    summary = serializers.CharField(help_text=f"The summary. At most {LONGEST_SUMMARY} characters. May be blank.")
    evidence = EvidenceItemSerializer(many=True)
    causes = serializers.ListField(child=serializers.CharField(), help_text="Probable causes, the most probable first.")
    steps = serializers.ListField(child=serializers.CharField(), help_text="Recommended steps, in order.")
    listed_under = serializers.IntegerField(
        source="parent_id",
        allow_null=True,
        help_text=(
            "Id of the finding that is the cause; this finding is listed under it and not counted. Null: "
            "no cause that you may see."
        ),
    )
    is_shadow = serializers.BooleanField(help_text="The rule is in shadow mode: no notification, no count.")
    resolved_reason = serializers.CharField(
        help_text="Blank: the fault is gone. Otherwise, shadow mode began or ended, or GPU telemetry ended."
    )
    times = serializers.IntegerField(
        help_text="How often the finding opened. A finding opens again if the fault returns soon."
    )
    impact = serializers.SerializerMethodField(help_text="The affected pods. Null: the finding has no existing node.")
    is_seen = serializers.SerializerMethodField(
        help_text="False: the fault may be gone. The cluster is not live, or its GPUs send no telemetry."
    )
    seen_until = serializers.SerializerMethodField(
        help_text="Last confirmation of the fault. Null: `is_seen` is true, the finding is resolved, or unknown."
    )

    class Meta:
        model = Finding
        fields = (
            "id", "cluster", "node", "subject", "rule", "severity", "state", "title", "summary", "evidence", "causes",
            "steps", "since", "confirmed_at", "opened_at", "first_opened_at", "times", "updated_at", "resolved_at",
            "resolved_reason", "is_shadow", "listed_under", "acknowledged_at", "acknowledged_by", "assigned_to",
            "feedback", "feedback_by", "feedback_reason", "impact", "is_seen", "seen_until",
        )  # fmt: skip

    @extend_schema_field(ImpactSerializer(allow_null=True))
    def get_impact(self, finding: Finding) -> dict[str, Any] | None:
        found = getattr(finding, "impact", None)
        return None if found is None else dict(ImpactSerializer(found).data)

    def get_is_seen(self, finding: Finding) -> bool:
        return getattr(finding, "last_seen", None) is None

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_seen_until(self, finding: Finding) -> datetime | None:
        last_seen = getattr(finding, "last_seen", None)
        return None if last_seen is None else last_seen.at


class FindingActSerializer(RowSerializer):
    class Meta:
        model = FindingAct
        fields = ("verb", "by", "at", "reason", "to")


class PrecisionSerializer(serializers.Serializer):
    """The number of times that people accepted or dismissed the rule's recommended actions."""

    accepted = serializers.IntegerField()
    dismissed = serializers.IntegerField()


class FindingDetailSerializer(serializers.Serializer):
    finding = FindingSerializer()
    rule_title = serializers.CharField()
    pools = serializers.ListField(child=serializers.CharField(), help_text="Pools of the node.")
    children = serializers.ListField(
        child=serializers.IntegerField(), source="child_keys",
        help_text=("Ids of the findings that are listed under this finding. If it is resolved: that were listed "
                  "while it was open."),
    )  # fmt: skip
    elsewhere = serializers.IntegerField(help_text="Number of other open findings of the same rule.")
    code = serializers.CharField(help_text="Distinguishes findings of the same rule, such as `Xid 79`. Blank: none.")
    alike = serializers.ListField(
        child=serializers.IntegerField(), source="alike_keys",
        help_text=(f"Newest findings with the same code, at most {MOST_ALIKE}. Without a code: newest findings "
                  "of the same rule."),
    )  # fmt: skip
    alike_listed = serializers.IntegerField(
        help_text="Number of similar open findings that are listed under their causes. They are not in `alike`."
    )
    shared = SuspectsSerializer(
        allow_null=True, help_text="Properties that nodes with it share. Null: too few nodes have it, or lack it."
    )
    driver_change = EventSerializer(allow_null=True, help_text="Last driver change on the node. Null: none is known.")
    driver_changed = serializers.CharField(help_text="For example `5 min before its start`. Blank: none is known.")
    around = EventSerializer(
        many=True, help_text=f"Events on the node within 30 min of the start: the nearest {MOST_AROUND}."
    )
    around_left_out = serializers.IntegerField(help_text="Number of further events. They are in the node's timeline.")
    acts = FindingActSerializer(many=True, help_text="Acts of people on this finding, newest first.")
    mutes = MuteSerializer(
        many=True, help_text="Mutes in force that cover this finding. Mutes of pools that you may not see are left out."
    )
    precision = PrecisionSerializer()
    runbook = serializers.CharField(help_text="Page with the steps of the rule. They are also in `/api/v1/rules`.")
    telemetry = serializers.CharField(
        allow_null=True,
        help_text="Address of the GPU telemetry. Null: the finding is not about telemetry, or the node is gone.",
    )
    markdown = serializers.CharField(help_text="The whole finding as Markdown text for a chat or a ticket.")


class FindingList(Listing):
    """Lists current and past findings about nodes, clusters and their observation, newest first."""

    serializer_class = FindingSerializer
    filterset_class = FindingFilters
    queryset = Finding.objects.none()

    def get_queryset(self):
        visible = Finding.objects.visible_to(self.user)
        if not self.request.query_params.get("is_shadow"):  # blank filters nothing, and asks for none of these
            visible = visible.notified()
        if not self.request.query_params.get("confirming"):
            visible = visible.filter(opened_at__isnull=False)
        return visible.select_related("cluster", "node").defer("node__labels", "node__annotations")

    def see(self, rows: Sequence[Finding]) -> Sequence[Finding]:
        as_seen_by(self.user, rows)
        return with_impact(dated(rows, now=timezone.now()))


class FindingGroupSerializer(serializers.Serializer):
    """A row of the inbox."""

    rule = serializers.CharField()
    title = serializers.CharField(help_text="Title of the rule.")
    code = serializers.CharField(help_text="Distinguishes findings of the same rule, such as `Xid 79`. Blank: none.")
    cluster = RefSerializer()
    severity = serializers.ChoiceField(choices=SEVERITIES)
    state = serializers.ChoiceField(choices=STATES)
    assigned_to = serializers.CharField()
    nodes = serializers.IntegerField()
    findings = serializers.ListField(child=serializers.IntegerField(), help_text="Ids of the findings, newest first.")


class FindingGroups(Edge):
    @extend_schema(responses=FindingGroupSerializer(many=True))
    def get(self, request) -> Response:
        """Lists groups of similar findings on several nodes of a cluster that began together, worst first.

        Each finding is also in `/findings`.
        """
        return Response(FindingGroupSerializer(described_groups(self.user), many=True).data)


class FindingDetail(Edge):
    @extend_schema(responses=FindingDetailSerializer)
    def get(self, request, finding_id: int) -> Response:
        """Returns one finding with its impact, the events around its start, and all acts on it."""
        visible = Finding.objects.visible_to(self.user).select_related("cluster", "node")
        finding, now = self.load(visible, finding_id), timezone.now()
        as_seen_by(self.user, [finding])
        detail = detail_of(finding, self.user, now=now)
        finding.impact, finding.last_seen = detail.impact, detail.last_seen  # type: ignore[attr-defined]
        link = request.build_absolute_uri(f"{reverse('findings')}?finding={finding.pk}")
        series = reverse("api-finding-telemetry", args=[finding.pk]) if is_plotted(finding) else None
        more = {
            "runbook": f"{reverse('rule', args=[finding.rule])}#steps",
            "telemetry": series,
            "markdown": as_markdown(detail, link=link, now=now),
            "child_keys": [one.pk for one in detail.children],
        }
        more |= {"alike_keys": [one.pk for one in detail.alike], "driver_changed": detail.driver_changed}
        return Response(FindingDetailSerializer({**vars(detail), **more}).data)


class FindingTelemetry(Edge):
    @extend_schema(parameters=[SinceAsked], responses=TelemetryHistorySerializer)
    def get(self, request, finding_id: int) -> Response:
        """Returns the GPU telemetry of the finding's node, from half an hour before its start to half an hour after.

        The data comes from the cluster's Prometheus or its exporters, with the limits of the rule. A finding that is
        not about GPU telemetry returns 404.
        """
        visible = Finding.objects.visible_to(self.user).select_related("cluster", "node")
        finding = self.load(visible, finding_id)
        if finding.node is None or not is_plotted(finding):
            raise Http404
        told = plots_of(finding, finding.node, **asked_in(request, SinceAsked), now=timezone.now())
        return Response(visible_history(self.user, finding.node, told))


def with_impact(rows: Sequence[Finding]) -> Sequence[Finding]:
    impacts = impacts_of(rows, now=timezone.now())
    for row in rows:
        row.impact = impacts.get(row.pk)  # type: ignore[attr-defined]
    return rows

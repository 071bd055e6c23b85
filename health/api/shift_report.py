"""The shift report, with the same data as its page."""

from typing import Any

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Edge
from fleet.models import Cluster
from fleet.queries import see_clusters
from health.api.findings import FindingSerializer
from health.inbox.markdown import handover_as_markdown
from health.inbox.shift_report import HOURS, MOST, USUAL, ReportedFinding, ReportSection, handover_of


class ShiftReportAsked(Asked):
    hours = serializers.ChoiceField(
        choices=[(str(hours), str(hours)) for hours in HOURS], required=False, default=str(USUAL),
        help_text="Hours before now. Findings that were resolved in this period are included.",
    )  # fmt: skip


class FindingCountsSerializer(serializers.Serializer):
    """Counts of unresolved findings. Findings listed under another finding are not counted."""

    unresolved = serializers.IntegerField(help_text="The sum of the other counts.")
    open = serializers.IntegerField()
    acknowledged = serializers.IntegerField()
    confirming = serializers.IntegerField()
    muted = serializers.IntegerField()


class ReportedFindingSerializer(serializers.Serializer):
    title = serializers.CharField(help_text="Title of the rule.")
    finding = FindingSerializer()


class ReportSectionSerializer(serializers.Serializer):
    lines = ReportedFindingSerializer(many=True, help_text=f"The findings, at most {MOST}.")
    left_out = serializers.IntegerField(help_text="Number of further findings. They are in `/api/v1/findings`.")


class ReportedCaseSerializer(serializers.Serializer):
    """An open case of a node."""

    number = serializers.IntegerField(help_text="Its id in `/api/v1/cases`.")
    node = serializers.CharField()
    cluster = serializers.CharField()
    owner = serializers.CharField(help_text="Who does the next step.")
    state = serializers.CharField()
    state_since = serializers.DateTimeField()
    opened_at = serializers.DateTimeField()
    reason = serializers.CharField(help_text="Of its opening.")
    next_step = serializers.CharField(help_text="What it waits for, and what follows.")


class CaseSectionSerializer(serializers.Serializer):
    lines = ReportedCaseSerializer(many=True, help_text=f"The open cases, at most {MOST}.")
    left_out = serializers.IntegerField(help_text="Number of further cases. They are in `/api/v1/cases`.")


class AgeSerializer(serializers.Serializer):
    """The age of the data of a cluster or of its telemetry source."""

    name = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True, help_text="Time of the last update. Null: never.")
    is_late = serializers.BooleanField(help_text="The data is too old or incomplete to exclude faults.")
    reason = serializers.CharField(help_text="The reason. Blank: none.")


class ShiftReportSerializer(serializers.Serializer):
    at = serializers.DateTimeField()
    hours = serializers.IntegerField()
    counts = FindingCountsSerializer()
    cases = CaseSectionSerializer(help_text="Open cases of nodes, the longest in their state first.")
    unresolved = ReportSectionSerializer(help_text="Unresolved findings, worst first.")
    resolved = ReportSectionSerializer(help_text="Findings resolved in the last `hours` hours, newest first.")
    in_shadow_mode = serializers.IntegerField(
        help_text="The number of rules in shadow mode. These counts exclude their findings."
    )
    ages = AgeSerializer(many=True, help_text="Age of the data of each source. Empty: you may see no cluster.")
    markdown = serializers.CharField(help_text="The whole report as Markdown text for a chat or a ticket.")


class ShiftReport(Edge):
    @extend_schema(parameters=[ShiftReportAsked], responses=ShiftReportSerializer)
    def get(self, request) -> Response:
        """Returns the shift report: open cases, findings, recently resolved ones, and the age of each source."""
        asked, now = ShiftReportAsked(data=request.query_params.dict()), timezone.now()
        asked.is_valid(raise_exception=True)
        rows = Cluster.objects.visible_to(self.user).select_related("observer").order_by("name")
        clusters = see_clusters(list(rows), user=self.user, now=now)
        report = handover_of(self.user, clusters, hours=int(asked.validated_data["hours"]), now=now)
        inbox = request.build_absolute_uri(reverse("findings"))
        told: dict[str, Any] = {
            **vars(report),
            "unresolved": _section(report.unresolved),
            "resolved": _section(report.resolved),
            "markdown": handover_as_markdown(report, inbox=inbox),
        }
        return Response(ShiftReportSerializer(told).data)


def _section(section: ReportSection) -> dict[str, Any]:
    return {"lines": [_reported(line) for line in section.lines], "left_out": section.left_out}


def _reported(line: ReportedFinding) -> dict[str, Any]:
    """Returns a finding as its list shows it, with its impact and the time it was last confirmed."""
    finding = line.finding
    finding.impact, finding.last_seen = line.impact, line.last_seen  # type: ignore[attr-defined]
    return {"title": line.title, "finding": finding}

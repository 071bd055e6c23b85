"""Trials of a telemetry source before it is saved: requested first, then polled."""

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import RowSerializer
from fleet.api.serializers import RefSerializer
from health.api.exported_metrics import NodesCountedSerializer
from health.api.telemetry import ADMINS, METRIC_KEYS, OfASource, TelemetrySourcePut, context_of
from health.inbox.source_trials import TRIED, ask_trial, exporting_by, trial_summary
from health.models import TelemetryTrial, TrialState
from health.telemetry.metrics import missing_metrics
from people.rights import Permission

NONE_YET = "Null: the source does not answer, or there is no result yet."
KEYS = serializers.ListField(child=serializers.ChoiceField(choices=METRIC_KEYS), allow_null=True)


class TelemetryTrialSerializer(RowSerializer):
    """A source that a worker queries once, without saving it."""

    cluster = RefSerializer()
    user = serializers.CharField(allow_null=True, help_text="For basic authentication. Null: only admins see it.")
    secret_from = serializers.CharField(allow_null=True, help_text=ADMINS)
    ca_file = serializers.CharField(allow_null=True, help_text="Path of the CA file. Null: only admins see it.")
    begun_at = serializers.DateTimeField(allow_null=True, help_text="Start of the query. Null: not started.")
    ended_at = serializers.DateTimeField(allow_null=True, help_text="End of the query. Null: no result yet.")
    state = serializers.SerializerMethodField(
        help_text="waiting and asking: poll again after a second. lost: no worker has reported a result."
    )
    sentence = serializers.SerializerMethodField(help_text="Progress of the trial; at the end its result or its error.")
    notes = serializers.ListField(child=serializers.CharField(), help_text="Anomalies in the source's answer.")
    devices = serializers.SerializerMethodField(help_text=f"Number of GPUs and MIG slices in the answer. {NONE_YET}")
    exported = serializers.SerializerMethodField(help_text=NONE_YET)
    nodes = serializers.SerializerMethodField(
        help_text=f"Number of nodes that export each metric. `never_reported`: nodes without a series. {NONE_YET}"
    )
    not_exported = serializers.SerializerMethodField(help_text=f"Default metrics that the source lacks. {NONE_YET}")
    to_be_switched_on = serializers.SerializerMethodField(
        help_text=f"Metrics that must be enabled in the exporter and that the source does not have. {NONE_YET}"
    )

    class Meta:
        model = TelemetryTrial
        fields = (
            "id", "cluster", "url", "matchers", "user", "secret_from", "ca_file", "asked_by", "asked_at", "begun_at",
            "ended_at", "state", "sentence", "notes", "devices", "exported", "nodes", "not_exported",
            "to_be_switched_on",
        )  # fmt: skip

    def to_representation(self, trial: TelemetryTrial) -> dict[str, Any]:
        said = super().to_representation(trial)
        if not self.context["administers"].covers_cluster(trial.cluster_id):
            said |= dict.fromkeys(("user", "secret_from", "ca_file"))
        return said

    @extend_schema_field(serializers.ChoiceField(choices=[(each.value, each.value) for each in TrialState]))
    def get_state(self, trial: TelemetryTrial) -> str:
        return trial.state_at(self.context["now"]).value

    @extend_schema_field(serializers.CharField())
    def get_sentence(self, trial: TelemetryTrial) -> str:
        return trial_summary(trial, now=self.context["now"])

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_devices(self, trial: TelemetryTrial) -> int | None:
        return trial.devices if trial.answers else None

    @extend_schema_field(KEYS)
    def get_exported(self, trial: TelemetryTrial) -> list[str] | None:
        return trial.exported if trial.answers else None

    @extend_schema_field(serializers.DictField(child=NodesCountedSerializer(), allow_null=True))
    def get_nodes(self, trial: TelemetryTrial) -> dict[str, dict[str, int]] | None:
        counted = exporting_by(trial) if trial.answers else None
        return {key: nodes._asdict() for key, nodes in counted.by_metric().items()} if counted else None

    @extend_schema_field(KEYS)
    def get_not_exported(self, trial: TelemetryTrial) -> list[str] | None:
        return [metric.key for metric in missing_metrics(trial.exported)[0]] if trial.answers else None

    @extend_schema_field(KEYS)
    def get_to_be_switched_on(self, trial: TelemetryTrial) -> list[str] | None:
        return [metric.key for metric in missing_metrics(trial.exported)[1]] if trial.answers else None


class OfTrials(OfASource):
    def respond(self, trial: TelemetryTrial, *, status: int = 200) -> Response:
        return Response(TelemetryTrialSerializer(trial, context=context_of(self)).data, status=status)


class TelemetryTrialList(OfTrials):
    @extend_schema(request=TelemetrySourcePut, responses={201: TelemetryTrialSerializer})
    def post(self, request, cluster_id: int) -> Response:
        """Requests a trial: a worker queries the source once and changes nothing.

        The document is that of PUT; `is_on` and `was` are ignored. A cluster has one trial at a time. It is recorded as
        a decision.
        """
        cluster = self.cluster(cluster_id, Permission.ADMINISTER)
        asked = self.read(TelemetrySourcePut)
        fields = {name: asked[name] for name in TRIED}
        trial = ask_trial(cluster, actor=self.user.get_username(), now=timezone.now(), **fields)
        return self.respond(trial, status=201)


class TelemetryTrialDetail(OfTrials):
    @extend_schema(responses=TelemetryTrialSerializer)
    def get(self, request, cluster_id: int, trial_id: int) -> Response:
        """Returns the progress and the result of a trial. It is kept for a day."""
        trials = TelemetryTrial.objects.visible_to(self.user).select_related("cluster")
        return self.respond(get_object_or_404(trials, pk=trial_id, cluster__pk=cluster_id))

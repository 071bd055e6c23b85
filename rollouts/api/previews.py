from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from edges.rest import ReportSerializer
from rollouts.api.serializers import Option
from rollouts.commands.forecast import Forecast
from rollouts.commands.preview import Preview, StagePreview, StartVerdict
from rollouts.preflight.live_checks.answers import LiveResult

NULL = "Null: the pods were never read."


class PreflightCheckSerializer(ReportSerializer):
    code = serializers.CharField()
    field = serializers.CharField(help_text="The field, spelled as in errors of the draft or document. Blank: none.")
    is_grave = serializers.BooleanField(help_text="Only for warnings. True: the warning is as serious as a blocker.")
    is_good = serializers.BooleanField(help_text="Only for warnings. True: it confirms that something is in order.")
    may_be_overridden = serializers.BooleanField(
        help_text="Only for blockers. True: a start with `override_reason` overrides the blocker."
    )


class GateChosenSerializer(serializers.Serializer):
    title = serializers.CharField()
    options = serializers.DictField(child=Option(), help_text="Options that differ from the defaults.")


class ExcludedSerializer(serializers.Serializer):
    node = serializers.CharField()
    reason = serializers.CharField()


class HarmSerializer(serializers.Serializer):
    """The disruption cost of a node. Nodes with the least cost are released first."""

    node = serializers.CharField()
    gpu_hours = serializers.FloatField(
        allow_null=True, help_text=f"Largest loss in GPU-hours: whole jobs since the start of their pods. {NULL}"
    )
    uncounted_pods = serializers.IntegerField(help_text="Pods with slices, shares or claims, not in `gpu_hours`.")
    jobs = serializers.ListField(child=serializers.CharField(), help_text="Jobs that the node ends, costliest first.")
    restarts = serializers.IntegerField(
        allow_null=True, help_text=f"Number of service pods on the node. Each restarts and loses no work. {NULL}"
    )
    pods = serializers.IntegerField(allow_null=True, help_text=f"Number of GPU pods on the node. 0: idle. {NULL}")
    sentence = serializers.CharField()


class StagePreviewSerializer(serializers.Serializer):
    name = serializers.CharField()
    kind = serializers.CharField()
    targets = serializers.ListField(child=serializers.CharField())
    waves = serializers.IntegerField(help_text="The least possible number of waves.")
    by_wave = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="Nodes in release order, by wave. Assumes that each wave has its largest size.",
    )
    at_once = serializers.IntegerField(help_text="Largest number of nodes in a wave.")
    waves_reason = serializers.CharField(help_text="Limits on the size of a wave.")
    max_unavailable = serializers.IntegerField()
    gates = serializers.SerializerMethodField()
    costs = serializers.CharField(help_text="Disruption cost of all nodes of the stage together.")
    harms = serializers.SerializerMethodField(help_text="Cost of each node in release order. It explains the order.")

    @extend_schema_field(HarmSerializer(many=True))
    def get_harms(self, stage: StagePreview) -> list[dict]:
        return [
            {
                "node": node,
                "gpu_hours": round(harm.gpu_hours, 1) if harm.is_known else None,
                "uncounted_pods": harm.uncounted,
                "jobs": [job.name for job in harm.jobs],
                "restarts": harm.restarts if harm.is_known else None,
                "pods": harm.pods if harm.is_known else None,
                "sentence": harm.sentence,
            }
            for node, harm in stage.harms
        ]

    @extend_schema_field(GateChosenSerializer(many=True))
    def get_gates(self, stage: StagePreview) -> list[dict]:
        return [{"title": title, "options": options} for title, options in stage.gates]


class WarmUpSerializer(serializers.Serializer):
    """The shortest warm-up of a workload's pods on these nodes, from acceptance to Ready."""

    workload = serializers.CharField(help_text="Owner of the pods, as kind and namespace/name.")
    pods = serializers.IntegerField(help_text="Number of pods of the workload on these nodes.")
    took_s = serializers.FloatField()


class ForecastSerializer(serializers.Serializer):
    """The forecast of disruption now; values from pods are null where pods were never read."""

    nodes = serializers.IntegerField()
    gpus = serializers.IntegerField(allow_null=True, help_text="Number of GPUs. Null: unknown for all of these nodes.")
    uncounted_nodes = serializers.IntegerField(help_text="Number of GPU nodes whose number of GPUs is unknown.")
    pods = serializers.IntegerField(allow_null=True)
    jobs = serializers.IntegerField(allow_null=True, help_text="Jobs that end completely if one of their pods ends.")
    restarts = serializers.IntegerField(allow_null=True, help_text="Service pods. Each restarts and loses no work.")
    gpu_hours = serializers.FloatField(allow_null=True, help_text="Largest loss of work, in GPU-hours. Null: unknown.")
    uncounted_pods = serializers.IntegerField(
        allow_null=True, help_text="Pods with slices, shares or claims, not in `gpu_hours`."
    )
    namespaces = serializers.ListField(child=serializers.CharField(), allow_null=True)
    pods_with_local_files = serializers.IntegerField(
        allow_null=True, help_text="Number of pods with an emptyDir volume. A drain deletes its data."
    )
    takes_s = serializers.FloatField(source="duration.takes_s", help_text="Expected seconds, without waits for people.")
    takes = serializers.CharField(source="duration.sentence", help_text="How `takes_s` was calculated.")
    unmanaged_pods = serializers.IntegerField(allow_null=True, help_text="Pods that no controller starts again.")
    warm_ups = WarmUpSerializer(
        many=True, allow_null=True, help_text="Workloads whose pods needed a minute or more to be Ready, slowest first."
    )
    waits_for_operator_s = serializers.SerializerMethodField(
        help_text="Longest additional wait. The operator checks for each wave every two minutes."
    )

    def get_waits_for_operator_s(self, forecast: Forecast) -> int:
        return int(forecast.waits_for_operator.total_seconds())


class StepSerializer(serializers.Serializer):
    sentence = serializers.CharField()
    command = serializers.CharField(help_text="A shell command. kubectl must be configured for the plan's cluster.")


class IsolatedCanarySerializer(serializers.Serializer):
    """The steps to try the version on nodes with a driver object of their own, which arms no other node."""

    reason = serializers.CharField(help_text="Why an isolated canary is not possible here. Blank: it is possible.")
    steps = StepSerializer(many=True)
    rollback = StepSerializer(many=True)


class LiveAnswerSerializer(serializers.Serializer):
    """The API server's answer to one question."""

    result = serializers.CharField(help_text=f"One of {', '.join(LiveResult)}. `unanswered` prevents a start, too.")
    check = PreflightCheckSerializer()


class LiveCheckSerializer(serializers.Serializer):
    """The live check of a plan's cluster."""

    asked_by = serializers.CharField(source="row.asked_by")
    asked_at = serializers.DateTimeField(source="row.asked_at")
    is_start = serializers.BooleanField(source="row.is_start", help_text="The plan starts if nothing prevents it.")
    is_in_force = serializers.BooleanField(
        help_text="The check is not finished. `answers` come from the previous check."
    )
    answered_at = serializers.DateTimeField(source="row.answered_at", allow_null=True, help_text="Null: never.")
    answered_revision = serializers.IntegerField(
        source="row.answered_revision", allow_null=True, help_text="Revision of the draft that was checked."
    )
    answers = LiveAnswerSerializer(many=True)
    outcome = serializers.CharField(
        source="row.outcome", help_text="Why the plan did not start, or why there are no answers. Blank: no reason."
    )
    sentence = serializers.CharField()


class PreviewSerializer(serializers.Serializer):
    verdict = serializers.CharField(help_text=f"One of {', '.join(StartVerdict)}.")
    verdict_sentence = serializers.CharField()
    seen_at = serializers.DateTimeField(help_text="Time at which the rows for this preview were read.")
    blockers = PreflightCheckSerializer(many=True, help_text="All must be resolved or overridden before a start.")
    warnings = PreflightCheckSerializer(many=True)
    stages = StagePreviewSerializer(many=True)
    uncovered = serializers.ListField(child=serializers.CharField(), help_text="Nodes that are in no stage.")
    excluded = serializers.SerializerMethodField(help_text="Nodes that are left out, with the reason.")
    forecast = ForecastSerializer()
    canary_shows = serializers.CharField()
    canary_failure_rate_at_most = serializers.FloatField(
        help_text="Ratio from 0 to 1: the upper 95 % confidence bound if no canary node fails."
    )
    cohorts_uncovered = serializers.ListField(child=serializers.CharField())
    isolated_canary = IsolatedCanarySerializer()
    live = LiveCheckSerializer(allow_null=True, help_text="Last live check of the cluster. Null: none.")

    @extend_schema_field(ExcludedSerializer(many=True))
    def get_excluded(self, preview: Preview) -> list[dict]:
        return [{"node": node, "reason": reason} for node, reason in preview.excluded]

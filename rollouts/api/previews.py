from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from edges.rest import ReportSerializer
from rollouts.api.serializers import Option
from rollouts.commands.preview import Forecast, Preview, StagePreview, StartVerdict
from rollouts.preflight.live_checks.answers import LiveResult

NULL = "Null: its pods were never read."


class PreflightCheckSerializer(ReportSerializer):
    code = serializers.CharField()
    field = serializers.CharField(
        help_text="Where it is written, as errors of the draft or document name it; blank: in none of their fields."
    )
    is_grave = serializers.BooleanField(help_text="Of a warning: as red as a blocker.")
    is_good = serializers.BooleanField(help_text="Of a warning: it says what is in order.")
    may_be_overridden = serializers.BooleanField(help_text="Of a blocker: by `override_reason` of a start.")


class GateChosenSerializer(serializers.Serializer):
    title = serializers.CharField()
    options = serializers.DictField(child=Option(), help_text="Those that are not the usual ones.")


class ExcludedSerializer(serializers.Serializer):
    node = serializers.CharField()
    reason = serializers.CharField()


class HarmSerializer(serializers.Serializer):
    """The disruption cost of a node. Nodes with the least cost are released first."""

    node = serializers.CharField()
    gpu_hours = serializers.FloatField(
        allow_null=True, help_text=f"At most: of whole jobs, since their pods started. {NULL}"
    )
    uncounted_pods = serializers.IntegerField(help_text="With slices, shares or claims: theirs are not in `gpu_hours`.")
    jobs = serializers.ListField(child=serializers.CharField(), help_text="That end with it, the costliest first.")
    restarts = serializers.IntegerField(
        allow_null=True, help_text=f"Pods of services on it: each restarts and loses no work. {NULL}"
    )
    pods = serializers.IntegerField(allow_null=True, help_text=f"GPU pods on it. 0: it is idle. {NULL}")
    sentence = serializers.CharField()


class StagePreviewSerializer(serializers.Serializer):
    name = serializers.CharField()
    kind = serializers.CharField()
    targets = serializers.ListField(child=serializers.CharField())
    waves = serializers.IntegerField(help_text="At least this many.")
    by_wave = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="The nodes in the order in which they go, where each wave has all of its room.",
    )
    at_once = serializers.IntegerField(help_text="The most that a wave may have.")
    waves_reason = serializers.CharField(help_text="What sets that, and what makes waves smaller.")
    max_unavailable = serializers.IntegerField()
    gates = serializers.SerializerMethodField()
    costs = serializers.CharField(help_text="What its nodes take with them together.")
    harms = serializers.SerializerMethodField(help_text="Each node in order, and why it stands there.")

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

    workload = serializers.CharField(help_text="Kind, namespace/name of what makes its pods.")
    pods = serializers.IntegerField(help_text="Of it on these nodes.")
    took_s = serializers.FloatField()


class ForecastSerializer(serializers.Serializer):
    """The forecast of disruption now; values from pods are null where pods were never read."""

    nodes = serializers.IntegerField()
    gpus = serializers.IntegerField(allow_null=True, help_text="Null: nobody says how many any of the nodes has.")
    uncounted_nodes = serializers.IntegerField(help_text="GPU nodes of which nobody says how many GPUs they have.")
    pods = serializers.IntegerField(allow_null=True)
    jobs = serializers.IntegerField(allow_null=True, help_text="That end whole, for one pod of theirs.")
    restarts = serializers.IntegerField(allow_null=True, help_text="Pods of services: each restarts and loses no work.")
    gpu_hours = serializers.FloatField(allow_null=True, help_text="Of work that is lost at most. Null: not counted.")
    uncounted_pods = serializers.IntegerField(
        allow_null=True, help_text="With slices, shares or claims: theirs are not in `gpu_hours`."
    )
    namespaces = serializers.ListField(child=serializers.CharField(), allow_null=True)
    pods_with_local_files = serializers.IntegerField(
        allow_null=True, help_text="With an emptyDir, which a drain loses."
    )
    takes_s = serializers.FloatField(source="duration.takes_s", help_text="Without people's time.")
    takes = serializers.CharField(source="duration.sentence", help_text="What that is reckoned from.")
    unmanaged_pods = serializers.IntegerField(allow_null=True, help_text="Without a controller that makes them again.")
    warm_ups = WarmUpSerializer(
        many=True, allow_null=True, help_text="Workloads that took a minute or more, the longest first."
    )
    waits_for_operator_s = serializers.SerializerMethodField(
        help_text="At most, beside what the nodes need: the operator looks at each wave every two minutes."
    )

    def get_takes_s(self, forecast: Forecast) -> float:
        return forecast.duration.takes.total_seconds()

    def get_waits_for_operator_s(self, forecast: Forecast) -> int:
        return int(forecast.waits_for_operator.total_seconds())


class StepSerializer(serializers.Serializer):
    sentence = serializers.CharField()
    command = serializers.CharField(help_text="For a shell, with kubectl speaking to the plan's cluster.")


class IsolatedCanarySerializer(serializers.Serializer):
    """The steps to try the version on nodes with a driver object of their own, which arms no other node."""

    reason = serializers.CharField(help_text="Why it cannot be done here; blank: it can.")
    steps = StepSerializer(many=True)
    rollback = StepSerializer(many=True)


class LiveAnswerSerializer(serializers.Serializer):
    """The API server's answer to one question."""

    result = serializers.CharField(help_text=f"One of {', '.join(LiveResult)}. `unanswered` bars a start as well.")
    check = PreflightCheckSerializer()


class LiveCheckSerializer(serializers.Serializer):
    """The live check of a plan's cluster."""

    asked_by = serializers.CharField(source="row.asked_by")
    asked_at = serializers.DateTimeField(source="row.asked_at")
    is_start = serializers.BooleanField(source="row.is_start", help_text="Asked for a start, which it leads to.")
    is_in_force = serializers.BooleanField(help_text="A worker is at it, or will be: the answers are those of before.")
    answered_at = serializers.DateTimeField(source="row.answered_at", allow_null=True, help_text="Null: never.")
    answered_revision = serializers.IntegerField(
        source="row.answered_revision", allow_null=True, help_text="Of the draft that the answers are about."
    )
    answers = LiveAnswerSerializer(many=True)
    outcome = serializers.CharField(source="row.outcome", help_text="Why it led to no start; blank: it did.")
    sentence = serializers.CharField()


class PreviewSerializer(serializers.Serializer):
    verdict = serializers.CharField(help_text=f"One of {', '.join(StartVerdict)}.")
    verdict_sentence = serializers.CharField()
    seen_at = serializers.DateTimeField(help_text="When the rows were read that all this rests on.")
    blockers = PreflightCheckSerializer(many=True, help_text="It cannot start before these are mended.")
    warnings = PreflightCheckSerializer(many=True)
    stages = StagePreviewSerializer(many=True)
    uncovered = serializers.ListField(child=serializers.CharField(), help_text="Nodes that no stage takes.")
    excluded = serializers.SerializerMethodField(help_text="Nodes that are left out.")
    forecast = ForecastSerializer()
    canary_shows = serializers.CharField()
    cohorts_uncovered = serializers.ListField(child=serializers.CharField())
    isolated_canary = IsolatedCanarySerializer()
    live = LiveCheckSerializer(allow_null=True, help_text="What its cluster itself said last. Null: it was not asked.")

    @extend_schema_field(ExcludedSerializer(many=True))
    def get_excluded(self, preview: Preview) -> list[dict]:
        return [{"node": node, "reason": reason} for node, reason in preview.excluded]

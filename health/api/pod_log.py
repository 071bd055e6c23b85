"""The last lines of a pod's log, as on its page: requested first, then polled."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers
from rest_framework.response import Response

from edges.rest import Edge
from fleet.api.pods import PodReasonSerializer
from fleet.models import Pod
from health.inbox.pod_logs import NO_REDIS, ask_log, why_not_log
from health.sources.pod_log_answers import KEPT, PodLogAnswer, answer_for
from health.sources.snapshots import SnapshotsUnavailable
from health.stack.pods import reason_in_log

KEPT_S = int(KEPT.total_seconds())


class NoHandover(exceptions.APIException):
    status_code = 503
    default_detail = NO_REDIS


class PodLogSerializer(serializers.Serializer):
    """The last lines of the container that failed, or of the only one. Likely secrets are redacted."""

    state = serializers.ChoiceField(
        ["none", "waiting", "read", "failed"],
        help_text=f"none: not requested by you within {KEPT_S} s. waiting: poll again after a second.",
    )
    container = serializers.CharField(help_text="Blank: the only container of the pod.")
    asked_at = serializers.DateTimeField(allow_null=True, help_text="Null: not requested.")
    lines = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="At most 200 lines and 64 KiB. Null: not read."
    )
    reason = PodReasonSerializer(
        allow_null=True, help_text="Cause of an error in the lines of a tenant's pod. Null: no line has a known cause."
    )
    problem = serializers.CharField(help_text="Why there are no lines. Blank: no problem.")
    why_not = serializers.CharField(help_text="Why you may not read this log. Blank: you may.")


class PodLog(Edge):
    @extend_schema(responses=PodLogSerializer)
    def get(self, request, pod_id: int) -> Response:
        """Returns the lines that you requested. They expire after two minutes."""
        return Response(self._shown(self._pod(pod_id)))

    @extend_schema(request=None, responses={202: PodLogSerializer})
    def post(self, request, pod_id: int) -> Response:
        """Requests the last lines of the pod's log from its cluster. Operators may; each request is audited."""
        pod = self._pod(pod_id)
        try:
            ask_log(pod, user=self.user, now=timezone.now())
        except SnapshotsUnavailable as error:
            raise NoHandover from error
        return Response(self._shown(pod), status=202)

    def _pod(self, pod_id: int) -> Pod:
        return self.load(Pod.objects.visible_to(self.user).select_related("cluster"), pod_id)

    def _shown(self, pod: Pod) -> dict[str, Any]:
        why_not, problem, answer = why_not_log(self.user, pod), "", None
        if not why_not:
            try:
                answer = answer_for(pod.uid, self.user.pk)
            except SnapshotsUnavailable:
                problem = NO_REDIS
        shown: dict[str, Any] = {"container": "", "asked_at": None, "lines": None, "reason": None}
        if answer is not None:
            shown = {"container": answer.container, "asked_at": answer.asked_at, "lines": answer.lines}
            reason = reason_in_log(pod, answer.container, answer.lines or (), now=timezone.now())
            shown["reason"] = PodReasonSerializer(reason).data if reason else None
        problem = answer.trouble if answer else problem
        return shown | {"state": _state(answer), "problem": problem, "why_not": why_not}


def _state(answer: PodLogAnswer | None) -> str:
    if answer is None:
        return "none"
    if answer.trouble:
        return "failed"
    return "waiting" if answer.lines is None else "read"

"""A cluster's pools as a file, for scripts. The first answer to a file is a preview."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from edges.documents import LARGEST_BYTES
from edges.rest import Asked, Edge
from fleet.api.pools import OverlapSerializer, administer
from fleet.models import Cluster, Pool
from fleet.pools.files import compare, parse_pool_file, take_over, write
from fleet.pools.files.comparison import FileChangeKind


class PoolFileRequest(Asked):
    cluster = serializers.IntegerField(min_value=1, max_value=2**63 - 1, help_text="The cluster's id.")
    text = serializers.CharField(max_length=LARGEST_BYTES, trim_whitespace=False, help_text="Pools as YAML.")
    dry_run = serializers.BooleanField(default=True, help_text="Report the changes without making them.")
    prune = serializers.BooleanField(default=False, help_text="Also delete the pools that the file does not name.")
    expected_fingerprint = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=64,
        help_text="`fingerprint` of the preview. A different fingerprint is refused. Blank: no check.",
    )


class PoolMoveSerializer(serializers.Serializer):
    field = serializers.CharField()
    before = serializers.CharField(allow_null=True)
    after = serializers.CharField(allow_null=True)


class PoolFileChangeSerializer(serializers.Serializer):
    name = serializers.CharField()
    what = serializers.ChoiceField(choices=[(what.value, what.value) for what in FileChangeKind])
    moves = PoolMoveSerializer(many=True)
    nodes = serializers.IntegerField(
        allow_null=True, help_text="Nodes of the pool after the change. Null: no node enters or leaves."
    )
    entering = serializers.IntegerField(allow_null=True)
    leaving = serializers.IntegerField(allow_null=True)
    unpooled = serializers.IntegerField(
        allow_null=True, help_text="Nodes that leave this pool and are then in no pool."
    )
    overlaps = OverlapSerializer(many=True)
    obstacle = serializers.CharField(help_text="Reason why the change is not possible. Blank: possible.")


class PoolFileSerializer(serializers.Serializer):
    is_done = serializers.BooleanField(help_text="False: the request was a dry run.")
    fingerprint = serializers.CharField(help_text="Equal for equal changes of the same pools and nodes.")
    changes = PoolFileChangeSerializer(many=True)


class PoolFileText(serializers.Serializer):
    text = serializers.CharField(help_text="Pools as YAML.")


class PoolFiles(Edge):
    """Imports the pools of a cluster from a file, completely or not at all."""

    @extend_schema(request=PoolFileRequest, responses=PoolFileSerializer)
    def post(self, request) -> Response:
        asked = self.read(PoolFileRequest)
        cluster = self.load(Cluster.objects.visible_to(self.user), asked["cluster"])
        administer(self.user, cluster)
        file = parse_pool_file(asked["text"])
        if file.cluster not in {"", cluster.name}:
            raise ValidationError({"cluster": f"The file is for cluster {file.cluster}, not {cluster.name}."})
        comparison = compare(cluster, file.entries, prune=asked["prune"])
        if not asked["dry_run"]:
            expected = asked["expected_fingerprint"]
            take_over(comparison, actor=self.user.username, now=timezone.now(), expected=expected)
        changes = [_change_as_dict(change) for change in comparison.changes]
        said = {"is_done": not asked["dry_run"], "fingerprint": comparison.fingerprint, "changes": changes}
        return Response(PoolFileSerializer(said).data)


class ClusterPoolFile(Edge):
    """Exports the pools of a cluster as a file."""

    @extend_schema(responses=PoolFileText)
    def get(self, request, cluster_id: int) -> Response:
        cluster = self.load(Cluster.objects.visible_to(self.user), cluster_id)
        return Response({"text": write(cluster, Pool.objects.visible_to(self.user))})


def _change_as_dict(change) -> dict:
    shown = change.preview
    return {
        "name": change.name,
        "what": change.what.value,
        "moves": [{"field": name, "before": was, "after": value} for name, was, value in change.moves],
        "nodes": shown and shown.nodes,
        "entering": shown and shown.entering,
        "leaving": shown and shown.leaving,
        "unpooled": shown and shown.unpooled,
        "overlaps": shown.overlaps if shown else [],
        "obstacle": change.obstacle,
    }

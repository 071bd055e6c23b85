import os
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.validators import validate_slug
from django.utils import timezone

from edges.arguments import words
from fleet.messages import wake
from fleet.models import ApprovalRule, ClusterMode, Observer
from fleet.observer.cluster_registration import CannotAdd, add, ask
from fleet.pools.approval_rules import ProductionAsks, set_approval
from kube.client.cluster_secrets import PROFILE, profile_path
from kube.client.errors import BadKubeconfig
from kube.client.kubeconfig import contexts_in, is_folder
from people.roster.accounts import CONSOLE

LONGEST_PATH = 1024
OPTIONS = ("name", "context", "kubeconfig", "cluster_profile", "in_cluster", "mode", "approval")


class Command(BaseCommand):
    help = "Add a cluster to the fleet, or update it. No secret is stored: secrets stay in the kubeconfig."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", type=words(63), help="name of the cluster: letters, digits, - and _")
        parser.add_argument("--context", type=words(253), default="", help="of the kubeconfig")
        parser.add_argument(
            "--kubeconfig",
            help="a path that the workers can also read; default: $KUBECONFIG. A folder: a mounted cluster Secret of "
            "Argo CD, which has no context",
        )
        parser.add_argument(
            "--cluster-profile",
            type=words(200),
            default="",
            help="NAMESPACE/NAME of a ClusterProfile in our own cluster, instead of --context; --kubeconfig is then "
            "the file of access providers",
        )
        parser.add_argument(
            "--in-cluster", action="store_true", help="Quarterdeck runs in this cluster: use the pod's service account"
        )
        parser.add_argument("--mode", choices=ClusterMode.values, help="default: observe-only, or the present mode")

        parser.add_argument(
            "--approval",
            choices=ApprovalRule.values,
            help="none: plans change nodes without approval; default: required",
        )

    def handle(self, *args: Any, **given: Any) -> None:
        try:
            validate_slug(given["name"])
            self._add(**{key: given[key] for key in OPTIONS})
        except ValidationError as refusal:
            raise CommandError(f"“{given['name']}” is not a valid name. Use letters, digits, - and _.") from refusal
        except (CannotAdd, BadKubeconfig, ProductionAsks) as refusal:
            raise CommandError(str(refusal)) from refusal

    def _add(
        self, *, name: str, context: str, kubeconfig: str | None, cluster_profile: str, in_cluster: bool,
        mode: str | None, approval: str | None,
    ) -> None:  # fmt: skip
        if in_cluster and (context or cluster_profile):
            raise CannotAdd("--in-cluster has no context: it uses the service account of our pod.")
        if cluster_profile:
            context = context_of_profile(cluster_profile, context=context, providers=kubeconfig)
        is_secret = bool(kubeconfig) and is_folder(str(kubeconfig))
        if is_secret and context:
            raise CannotAdd(
                f"{kubeconfig} is a folder. A kubeconfig is a file; only a cluster Secret of Argo CD is a folder, and "
                "it has no --context."
            )
        if not (in_cluster or context or is_secret):
            raise CannotAdd("Give the --context of the kubeconfig, a --cluster-profile, or --in-cluster.")
        path = "" if in_cluster else str(kubeconfig_for(context, named=kubeconfig))
        if len(path) > LONGEST_PATH:
            raise CannotAdd(
                f"The path of a kubeconfig has at most {LONGEST_PATH:,} characters; this has {len(path):,}."
            )
        introduction = ask(path, context)
        cluster, is_new = add(
            name,
            kubeconfig=path,
            context=context,
            mode=ClusterMode(mode) if mode else None,
            introduction=introduction,
            now=timezone.now(),
        )
        if approval and approval != cluster.approval:
            reason = "add_cluster said so."
            set_approval(cluster, approval, actor=CONSOLE, reason=reason, now=timezone.now())
        wake.wake_observer(cluster.pk, Observer.objects.get(cluster=cluster).epoch)
        self._report(cluster.name, cluster.mode, introduction.server, introduction.server_version, is_new=is_new)
        for note in introduction.notes:
            self.stdout.write(f"  Note: {note}")

    def _report(self, name: str, mode: str, server: str, version: str, *, is_new: bool) -> None:
        done = "is added" if is_new else "is up to date"
        self.stdout.write(f"Cluster {name} {done}: Kubernetes {version} at {server}, mode {mode}.")


def context_of_profile(profile: str, *, context: str, providers: str | None) -> str:
    """Returns the context that stands for a ClusterProfile."""
    if context:
        raise CannotAdd("Give --context or --cluster-profile, not both.")
    if not providers:
        raise CannotAdd("A --cluster-profile needs --kubeconfig with the file of access providers.")
    profile_path(PROFILE + profile)
    return PROFILE + profile


def kubeconfig_for(context: str, *, named: str | None) -> Path:
    """Returns the kubeconfig that kubectl would use: the given one, else the first in $KUBECONFIG with the context.

    Precedence as in kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig.
    """
    said = [named] if named else [path for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    paths = [_absolute(path) for path in said or ["~/.kube/config"]]
    return next((path for path in paths if _has_context(path, context)), paths[0])


def _absolute(path: str) -> Path:
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError as error:
        raise CannotAdd(f"The home directory in {path[:60]} is unknown. Write the whole path.") from error


def _has_context(path: Path, context: str) -> bool:
    try:
        return path.is_file() and context in contexts_in(path)
    except (BadKubeconfig, OSError):
        return False  # the error names the file that is used

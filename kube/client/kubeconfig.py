"""Conversion of a kubeconfig and a context to a client configuration, with a plain sentence for every error."""

from pathlib import Path
from typing import Any

import yaml
from kubernetes import config
from kubernetes.client import Configuration
from kubernetes.config import incluster_config
from kubernetes.config.kube_config import KubeConfigLoader

from kube.client import plugins
from kube.client.cluster_secrets import CONTEXT, argo_document, profile_document
from kube.client.errors import BadKubeconfig

plugins.hide_secrets_from_plugins()


def load(kubeconfig: str, context: str) -> Configuration:
    """Loads the configuration of one context. No kubeconfig: the service account of our pod. A folder: a mounted
    cluster Secret of Argo CD.

    :raises BadKubeconfig: with the reason
    """
    path = Path(kubeconfig).expanduser()
    if not kubeconfig:
        return _configuration_of_pod()
    if is_folder(kubeconfig):
        return _configuration_of(argo_document(path), CONTEXT, path)
    return _configuration_of_file(path, context)


def load_profile(answer: bytes, providers: Path) -> Configuration:
    """Loads the configuration that a ClusterProfile and the file of access providers give.

    :raises BadKubeconfig: with the reason
    """
    return _configuration_of(profile_document(answer, providers), CONTEXT, providers)


def is_folder(path: str) -> bool:
    try:
        return Path(path).expanduser().is_dir()
    except (OSError, RuntimeError):  # a name that is too long, an unknown home directory
        return False


def contexts_in(path: Path) -> list[str]:
    return _context_names(_read_kubeconfig(path))


def _context_names(document: dict[str, Any]) -> list[str]:
    contexts = document.get("contexts")
    entries = contexts if isinstance(contexts, list) else []
    return [str(entry["name"]) for entry in entries if isinstance(entry, dict) and "name" in entry]


def pod_namespace() -> str:
    """Returns the namespace of our pod, from the file beside the token of its service account.

    Source: kubernetes.io/docs/tasks/run-application/access-api-from-pod

    :raises BadKubeconfig: outside of a pod
    """
    path = Path(incluster_config.SERVICE_TOKEN_FILENAME).with_name("namespace")
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise BadKubeconfig(f"The namespace of our pod is unknown: {path} cannot be read: {error.strerror}.") from error


def _configuration_of_pod() -> Configuration:
    settings = Configuration()
    try:
        config.load_incluster_config(client_configuration=settings)
    except config.ConfigException as error:
        raise BadKubeconfig(
            f"Not running in a pod with a service account ({error}). Give a kubeconfig and a context.",
        ) from error
    return settings


def _configuration_of_file(path: Path, context: str) -> Configuration:
    document = _read_kubeconfig(path)
    known = _context_names(document)
    if context not in known:
        in_full = (
            f"{path} has no context “{context}”. It has: {', '.join(known)}."
            if known
            else f"{path} has no contexts. It is empty or not a kubeconfig."
        )
        raise BadKubeconfig("The kubeconfig lacks this cluster's context.", in_full=in_full)
    return _configuration_of(document, context, path)


def _configuration_of(document: dict[str, Any], context: str, path: Path) -> Configuration:
    settings = Configuration()
    try:
        # Without a persister nothing is written back: the file belongs to the administrator, and others read it too.
        KubeConfigLoader(document, context, config_base_path=str(path.parent)).load_and_set(settings)
    except Exception as error:  # the client does not validate the file: any class, often without a message
        raise BadKubeconfig(
            "This cluster's context cannot be used. `bin/manage doctor` shows the reason.",
            in_full=f"Context “{context}” of {path} cannot be used: {error_text(error)}",
        ) from error
    return settings


def _read_kubeconfig(path: Path) -> dict[str, Any]:
    try:
        # libyaml: every round reads this file, and Python's own parser takes ten times as long
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    except FileNotFoundError as error:
        raise BadKubeconfig(
            "The worker does not have this kubeconfig.", in_full=f"The file {path} does not exist."
        ) from error
    except OSError as error:
        problem = f"cannot be read: {error.strerror}."
        raise BadKubeconfig(f"The kubeconfig {problem}", in_full=f"{path} {problem}") from error
    except Exception as error:  # an invalid date raises ValueError, deep nesting RecursionError
        problem = "is not valid YAML."
        raise BadKubeconfig(f"The kubeconfig {problem}", in_full=f"{path} {problem}") from error
    if not isinstance(document, dict):
        problem = "is not a YAML mapping."
        raise BadKubeconfig(f"The kubeconfig {problem}", in_full=f"{path} {problem}")
    return document


def error_text(error: Exception) -> str:
    """Returns the class and the message of an exception; the message may be empty."""
    return f"{type(error).__name__} {error}".strip()[:300]

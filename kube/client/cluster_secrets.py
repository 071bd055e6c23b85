"""Credentials of a cluster in other forms than a kubeconfig: Argo CD's cluster Secret and a ClusterProfile.

Each is turned into the document of a kubeconfig with one context, which the client then reads. Both are read anew for
each connection, so a rotated credential needs no restart.

Sources: Argo CD's docs/operator-manual/declarative-setup.md (Clusters) and `RawRestConfig` of its
pkg/apis/application/v1alpha1/types.go; sigs.k8s.io/cluster-inventory-api, apis/v1alpha1 and pkg/access/config.go.
"""

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from kube.client.errors import BadKubeconfig

CONTEXT = "cluster"  # the only one of each document
PROFILE = "clusterprofile:"  # followed by NAMESPACE/NAME: such a context is of the file of access providers
IN_CLUSTER = "https://kubernetes.default.svc"
ARGO_FILES = ("server", "config")
AWS_PLUGIN = "argocd-k8s-auth"  # plugin that Argo CD starts for `awsAuthConfig`; the administrator has to install it
LARGEST_FILE = 2**20  # as large as a Secret may be
Document = dict[str, Any]


class TlsClientConfig(msgspec.Struct, rename="camel"):
    insecure: bool = False
    server_name: str = ""
    ca_data: str = ""
    cert_data: str = ""
    key_data: str = ""


class ExecProviderConfig(msgspec.Struct, rename="camel"):
    command: str
    api_version: str
    args: list[str] = []
    env: dict[str, str] = {}
    provide_cluster_info: bool = False
    config: Any = None


class AwsAuthConfig(msgspec.Struct, rename={"cluster_name": "clusterName", "role_arn": "roleARN"}):
    cluster_name: str
    role_arn: str = ""
    profile: str = ""


class ArgoConfig(msgspec.Struct, rename="camel"):
    """The JSON in the key `config`."""

    username: str = ""
    password: str = ""
    bearer_token: str = ""
    tls_client_config: TlsClientConfig = msgspec.field(default_factory=TlsClientConfig)
    aws_auth_config: AwsAuthConfig | None = None
    exec_provider_config: ExecProviderConfig | None = None
    proxy_url: str = ""


class Extension(msgspec.Struct):
    name: str
    extension: Any = None


class ProfileCluster(msgspec.Struct, rename="kebab"):
    """A cluster as in a kubeconfig (clientcmd/api/v1 `Cluster`)."""

    server: str
    certificate_authority_data: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    proxy_url: str = ""
    extensions: list[Extension] = []


class AccessProvider(msgspec.Struct):
    name: str
    cluster: ProfileCluster


class ProfileStatus(msgspec.Struct, rename="camel"):
    access_providers: list[AccessProvider] = []
    credential_providers: list[AccessProvider] = []  # the older name of the same


class ClusterProfile(msgspec.Struct):
    status: ProfileStatus = msgspec.field(default_factory=ProfileStatus)


class Provider(msgspec.Struct, rename="camel"):
    """An entry of the file of access providers: the program that gets credentials of this kind."""

    name: str
    exec_config: Document
    profile_sourced_cli_args_policy: str = msgspec.field(default="Ignore", name="profileSourcedCLIArgsPolicy")
    profile_sourced_env_vars_policy: str = "Ignore"


class Providers(msgspec.Struct):
    providers: list[Provider]


ARGO = msgspec.json.Decoder(ArgoConfig)
CLUSTER_PROFILE = msgspec.json.Decoder(ClusterProfile)
PROVIDERS = msgspec.json.Decoder(Providers)


def argo_document(folder: Path) -> Document:
    """Reads a mounted cluster Secret of Argo CD.

    :raises BadKubeconfig: with the reason
    """
    missing = [name for name in ARGO_FILES if not (folder / name).is_file()]
    if missing:
        raise BadKubeconfig(
            f"The cluster Secret has no key {' and no key '.join(f'“{name}”' for name in missing)}.",
            in_full=f"{folder} is a folder, so it must be a cluster Secret of Argo CD. "
            f"It has no file {' and no file '.join(missing)}.",
        )
    server = _text(folder / "server").strip()
    config = _argo_config(folder / "config")
    if server.rstrip("/") == IN_CLUSTER:
        raise BadKubeconfig(
            "The cluster Secret is of the cluster in which it is used. Add that cluster with --in-cluster.",
        )
    if not server.startswith(("https://", "http://")):
        raise BadKubeconfig("The key “server” of the cluster Secret is no address such as https://10.0.0.1:6443.")
    tls = config.tls_client_config
    for name, value in {"caData": tls.ca_data, "certData": tls.cert_data, "keyData": tls.key_data}.items():
        _check_base64(name, value)
    cluster = {
        "server": server,
        "certificate-authority-data": tls.ca_data,
        "tls-server-name": tls.server_name,
        "insecure-skip-tls-verify": tls.insecure,
        "proxy-url": config.proxy_url,
    }
    if config.exec_provider_config and config.exec_provider_config.config is not None:
        cluster["extensions"] = [_for_plugin(config.exec_provider_config.config)]
    return _document(cluster, _argo_user(config))


def _check_base64(name: str, value: str) -> None:
    """Refuses plain PEM: the client drops characters that are not Base64, and then trusts nobody."""
    try:
        base64.b64decode(value, validate=True)
    except ValueError as error:
        raise BadKubeconfig(f"The field “{name}” of the cluster Secret is not Base64.") from error


def _argo_config(path: Path) -> ArgoConfig:
    try:
        return ARGO.decode(_text(path))
    except msgspec.DecodeError as error:
        # The message of a wrong type has a path and no value; that of broken JSON has a position.
        raise BadKubeconfig(
            "The key “config” of the cluster Secret is not the JSON of Argo CD. `bin/manage doctor` shows the reason.",
            in_full=f"{path} is not the JSON that Argo CD documents: {error}",
        ) from error


def _argo_user(config: ArgoConfig) -> Document:
    tls = config.tls_client_config
    if aws := config.aws_auth_config:
        arguments = ["aws", "--cluster-name", aws.cluster_name]
        arguments += ["--role-arn", aws.role_arn] if aws.role_arn else []
        arguments += ["--profile", aws.profile] if aws.profile else []
        version = "client.authentication.k8s.io/v1beta1"
        return {"exec": {"command": AWS_PLUGIN, "args": arguments, "apiVersion": version}}
    if plugin := config.exec_provider_config:
        return {
            "exec": {
                "command": plugin.command,
                "args": plugin.args,
                "apiVersion": plugin.api_version,
                "env": [{"name": name, "value": value} for name, value in plugin.env.items()],
                "provideClusterInfo": plugin.provide_cluster_info,
            }
        }
    user: Document = {"client-certificate-data": tls.cert_data, "client-key-data": tls.key_data}
    user |= {"token": config.bearer_token, "username": config.username, "password": config.password}
    if not any(user.values()):
        raise BadKubeconfig(
            "The cluster Secret has no credentials: no bearerToken, certificate, password, plugin or awsAuthConfig.",
        )
    return user


def profile_path(context: str) -> str:
    """Returns the path of a ClusterProfile in the API of the cluster in which Quarterdeck runs.

    :raises BadKubeconfig: unless the context is clusterprofile:NAMESPACE/NAME
    """
    namespace, _, name = context.removeprefix(PROFILE).partition("/")
    if not namespace or not name or "/" in name:
        raise BadKubeconfig(f"Name a ClusterProfile as {PROFILE}NAMESPACE/NAME.")
    return f"/apis/multicluster.x-k8s.io/v1alpha1/namespaces/{namespace}/clusterprofiles/{name}"


def profile_document(answer: bytes, providers_file: Path) -> Document:
    """Turns a ClusterProfile and the administrator's file of providers into a kubeconfig: the first provider of the
    file that the ClusterProfile has.

    :raises BadKubeconfig: with the reason
    """
    try:
        status = CLUSTER_PROFILE.decode(answer).status
    except msgspec.DecodeError as error:
        raise BadKubeconfig(
            "The ClusterProfile cannot be read. `bin/manage doctor` shows the reason.",
            in_full=f"The ClusterProfile has another shape than v1alpha1: {error}",
        ) from error
    offered = {one.name: one.cluster for one in [*status.credential_providers, *status.access_providers]}
    known = _providers(providers_file)
    provider = next((one for one in known if one.name in offered), None)
    if provider is None:
        names = _names(one.name for one in known)
        raise BadKubeconfig(
            "The ClusterProfile has no access provider that this installation knows.",
            in_full=f"The ClusterProfile has {_names(offered)}; {providers_file} has {names}.",
        )
    cluster = offered[provider.name]
    return _document(msgspec.to_builtins(cluster), {"exec": _plugin_of(provider, cluster)})


def _providers(path: Path) -> list[Provider]:
    try:
        return PROVIDERS.decode(_text(path)).providers
    except msgspec.DecodeError as error:
        raise BadKubeconfig(
            "The file of access providers cannot be read. `bin/manage doctor` shows the reason.",
            in_full=f"{path} is not a file of access providers: {error}",
        ) from error


def _plugin_of(provider: Provider, cluster: ProfileCluster) -> Document:
    """Adds arguments and variables of the ClusterProfile where the administrator allows it (KEP-5339)."""
    plugin = dict(provider.exec_config)
    extensions = {one.name: one.extension for one in cluster.extensions}
    more = extensions.get("clusterprofiles.multicluster.x-k8s.io/exec/additional-args") or []
    if provider.profile_sourced_cli_args_policy == "Append" and isinstance(more, list):
        plugin["args"] = [*(plugin.get("args") or []), *map(str, more)]
    theirs = extensions.get("clusterprofiles.multicluster.x-k8s.io/exec/additional-envs") or {}
    if provider.profile_sourced_env_vars_policy != "Ignore" and isinstance(theirs, dict):
        ours = {one["name"]: one["value"] for one in plugin.get("env") or []}
        replace = provider.profile_sourced_env_vars_policy == "Replace"
        variables = {**ours, **theirs} if replace else {**theirs, **ours}
        plugin["env"] = [{"name": name, "value": str(value)} for name, value in variables.items()]
    return plugin


def _for_plugin(config: Any) -> Document:
    return {"name": "client.authentication.k8s.io/exec", "extension": config}


def _document(cluster: Document, user: Document) -> Document:
    return {
        "clusters": [{"name": CONTEXT, "cluster": _without_blanks(cluster)}],
        "users": [{"name": CONTEXT, "user": _without_blanks(user)}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
    }


def _without_blanks(fields: Document) -> Document:
    """Leaves blank fields out: the client takes an empty certificate for one."""
    return {name: value for name, value in fields.items() if value not in ("", False, None)}


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(LARGEST_FILE)
    except (OSError, UnicodeDecodeError) as error:
        raise BadKubeconfig(
            "A file of this cluster's credentials cannot be read. `bin/manage doctor` shows the reason.",
            in_full=f"{path} cannot be read: {getattr(error, 'strerror', '') or 'it is no text'}.",
        ) from error

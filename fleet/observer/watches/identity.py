"""Which cluster answers: by the UID of its kube-system, asked for again whenever a connection broke."""

from kube import client


class ForeignCluster(client.ClusterError):
    """Another cluster answers at the address of the one we know. Its objects must not become our rows."""

    def __init__(self, sentence: str, *, foreign_uid: str, in_full: str = "") -> None:
        super().__init__(sentence, in_full=in_full)
        self.foreign_uid = foreign_uid


def make_sure(connection: client.Connection, *, name: str, uid: str) -> None:
    """:raises ForeignCluster: when what answers is not the cluster of this UID"""
    found = client.kube_system_uid(connection)
    if found != uid:
        said = (
            f"is another cluster: its kube-system has the UID {found}, {name} has {uid}. Nothing of it is taken over. "
            f"If {name} was rebuilt, accept it; if not, correct the address."
        )
        in_full = f"What answers at {connection.server} {said}"
        raise ForeignCluster(f"What answers in its place {said}", foreign_uid=found[:64], in_full=in_full)

from edges.documents import BadDocument, FileProblem

__all__ = ["BadPoolFile", "FileProblem"]


class BadPoolFile(BadDocument):
    """Nothing of it is taken over."""

from edges.documents import BadDocument, FileProblem

__all__ = ["BadPoolFile", "FileProblem"]


class BadPoolFile(BadDocument):
    """The refusal of a pool file. Nothing is imported."""

"""The inbox: acts on findings, and the queries of its pages and REST views."""

"""Starts the whole of Quarterdeck on one machine, for somebody who wants to see it and for the flows.

It starts processes and speaks HTTP to them, as any outsider would; the product never imports it.
"""

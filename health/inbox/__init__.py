"""What people do about findings, and what a page and REST show of one: each said once, here."""

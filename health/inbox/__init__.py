"""What people do about findings, and what pages and REST show of a finding."""

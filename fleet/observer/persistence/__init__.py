"""Writes of observed changes to the database, with dependent changes."""

"""The command line `quarterdeck`. It uses the REST API alone and imports nothing of the server."""

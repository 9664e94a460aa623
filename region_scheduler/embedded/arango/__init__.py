"""A test and single-machine server for ArangoDB's HTTP API."""

"""What people do, with an audit entry for each: the same code behind the API and the CLI."""

"""Local servers that stand in for outside systems; they import nothing of the scheduler."""

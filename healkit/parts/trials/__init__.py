"""Many variants of one code, tried in forks of one process."""

"""Storage: the database, the vault, the log and the outbox."""

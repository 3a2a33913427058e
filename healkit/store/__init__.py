"""What lasts: the database, the vault and the ExecutionLog."""

"""Files of executions: exported, imported, archived."""

"""The core's own commands, and where all are found (`rows`)."""

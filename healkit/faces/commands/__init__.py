"""Commands of the core, and where all are found (`rows`)."""

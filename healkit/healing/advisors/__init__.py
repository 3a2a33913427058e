"""healkit's own advisors."""

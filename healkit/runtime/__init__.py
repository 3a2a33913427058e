"""The one road every execution travels."""

"""MCP servers whose tools a worker can call."""

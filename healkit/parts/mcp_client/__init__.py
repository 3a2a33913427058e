"""MCP servers whose tools restricted code can call."""

"""MCP server for agents: vault, log, healing.

A client's message arrives by a transport (`transports`). `server` passes it to one of the vault's tools or of healkit's
own (`own_tools`). Both use the same parts as all other faces: `hk.runner`, `hk.healing`, `hk.requests`. `answers` turns
their results into content of the protocol; `resources` provides what an agent reads by address. `consent` asks before a
patch is applied.

It is only imported with the extra `healkit[mcp]`.
"""

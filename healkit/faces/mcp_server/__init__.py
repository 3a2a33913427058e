"""MCP server for agents: vault, log, healing.

A client's message comes in by a transport (`transports`), and `server` gives it to one of the vault's tools or of
healkit's own (`own_tools`). Both end in the parts that everybody uses: `hk.runner`, `hk.healing`, `hk.requests`. What
they give is made content of the protocol in `answers`; `resources` are what an agent reads by address. `consent` asks
before a patch is applied.

Imported only with the extra `healkit[mcp]`.
"""

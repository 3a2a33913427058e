"""Collector of traces, as a server or within Jupyter's.

- `service`: stores traces and answers requests, on threads.
- `handlers`: the HTTP routes.
- `limits`: limits for clients.
- `standalone`: a server for these routes alone (`healkit collect`). `healkit.faces.server` mounts them in Jupyter's
  server.
"""

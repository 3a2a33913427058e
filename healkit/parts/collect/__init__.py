"""Collector of traces, as a server or within Jupyter's.

`service` stores and answers, on threads; `handlers` are its HTTP routes, `limits` what a client may take. `standalone`
serves them alone (`healkit collect`); `healkit.faces.server` mounts them in Jupyter's server.
"""

"""Requests of a page, and their answers as plain JSON.

The panels of a notebook send requests to their kernel. The side panel and the stand-alone page send them to Jupyter's
server. Both get their answers here. `page_data` cleans and cuts recorded data, `operations` checks a request.
`log_reading`, `tool_reading`, `run_reading`, `audit_reading` and `request_reading` only read. `side_panel` lists all
requests that a server answers.
"""

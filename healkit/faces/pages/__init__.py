"""Questions of a page, and their answers as plain JSON.

The panels of a notebook ask their kernel, the side panel and the stand-alone page ask Jupyter's server; both get their
answers here. `page_data` cleans and cuts what is on record, `operations` checks a question. `log_reading`,
`tool_reading`, `run_reading`, `audit_reading` and `request_reading` only read; `side_panel` lists all that a server
answers.
"""

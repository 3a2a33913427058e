"""Documents, and their writers for text and HTML.

The module of a subject (`execution_card`, `listings`, `healing` and so on) builds a document. `text_of` in `to_text`
and `html_of` in `to_html` write it. Workers never import this package. A writer is imported on first use, since an
`Execution` that is never shown needs none.
"""

"""Documents, and their writers for text and HTML.

A subject's module (`execution_card`, `listings`, `healing` and so on) builds a document; `text_of` in `to_text` and
`html_of` in `to_html` write it. The worker side never imports this package; a writer is imported where it is first
used, since an `Execution` that is never shown needs none.
"""

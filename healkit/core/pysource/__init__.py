"""Reading Python sources.

Standard library only, and nothing is imported here: workers read the shape of a tool with it, and start fast.

- `source`: a text with its tree; positions of nodes, edits that leave the rest of the text as it is, and parentheses.
- `nodes`: parts of a syntax tree, names that code binds and reads, types of expressions.
- `shapes`: the three kinds of Python tool, and examples in docstrings.
"""

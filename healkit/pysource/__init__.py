"""Reading Python sources.

Standard library only, and nothing is imported here: workers read the shape of a tool with it, and start fast.

- `source`: a text with its tree; positions of nodes, and edits that leave the rest of the text as it is.
- `nodes`: parts of a syntax tree. `scope`: names that code binds and reads. `inference`: types of expressions.
- `precedence`: when an expression needs parentheses.
- `shapes`: the three kinds of Python tool. `doctests`: examples in docstrings.
"""

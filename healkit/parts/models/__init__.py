"""Language models: bounded questions, over two protocols.

A healing asks for patches by it, a decision for choices. `client` asks, with retries and limits, `model_endpoint` finds
model and key, `protocols` speaks OpenAI's and Anthropic's. Without a configured model nothing of it is loaded.
"""

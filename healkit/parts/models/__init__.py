"""Language models: bounded questions, over two protocols.

Healing uses them for patches, decisions for choices. `client` asks, with retries and limits. `model_endpoint` finds
model and key. `protocols` implements OpenAI's and Anthropic's protocol. These modules are loaded only if a model is
configured.
"""

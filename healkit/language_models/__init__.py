"""Language models: bounded questions, over two protocols.

A healing asks for patches by it, a decision for choices. `client` asks with retries and limits, `model_endpoint` finds
model and key, `openai_chat` and `anthropic_messages` speak the protocols, `transport` sends. Without a configured model
nothing of it is loaded.
"""

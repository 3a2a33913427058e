"""What asking a model takes: requests, tokens, and money where prices are known."""

from __future__ import annotations

from healkit.config import Config


class Spending:
    """A sum of costs; `counts` has `requests`, and `input_tokens` and `output_tokens` as far as servers tell."""

    def __init__(self, config: Config) -> None:
        self._input_usd = config.heal_model_input_usd_per_mtok
        self._output_usd = config.heal_model_output_usd_per_mtok
        self.counts: dict[str, int] = {}

    def add(self, counts: dict[str, int]) -> None:
        """Add what one question took."""
        for name, count in counts.items():
            self.counts[name] = self.counts.get(name, 0) + count

    @property
    def usd(self) -> float:
        """In US dollars by the configured prices; 0 without any."""
        counts = self.counts
        read, written = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
        return (read * self._input_usd + written * self._output_usd) / 1e6

    def cost(self) -> dict[str, float]:
        """As a patch carries it: the counts, and `usd` only where a price is configured."""
        priced = bool(self._input_usd or self._output_usd)
        return {**self.counts, **({"usd": self.usd} if priced else {})}

    def taken(self) -> dict[str, float]:
        """The cost so far; from here on it counts anew."""
        cost, self.counts = self.cost(), {}
        return cost

class Clock:
    def __init__(self, seconds, increment):
        self.left = seconds
        self.increment = increment
        self.moves = 0

    def spend(self, seconds):
        """Returns whether there was time enough."""
        if seconds >= self.left:
            self.left = 0
            return False
        self.left -= seconds
        self.left += self.increment
        self.moves += 1
        return True


class Game:
    """Two clocks, of which one runs."""

    def __init__(self, seconds, increment):
        self.clocks = {"white": Clock(seconds, increment), "black": Clock(seconds, increment)}
        self.turn = "white"
        self.loser = None

    def move(self, seconds):
        if self.loser is not None:
            return
        clock = self.clocks[self.turn]
        if not clock.spend(seconds):
            self.loser = self.turn
            return
        self.turn = "black" if self.turn == "white" else "white"


class ChessClockTool(Tool):
    def run(self, arguments):
        game = Game(arguments["seconds"], arguments.get("increment", 0))
        for seconds in arguments["moves"]:
            game.move(seconds)
        return {
            "white": game.clocks["white"].left,
            "black": game.clocks["black"].left,
            "loser": game.loser,
            "moves": sum(clock.moves for clock in game.clocks.values()),
        }

class Pet:
    def __init__(self):
        self.hunger = 5
        self.mood = 5

    def feed(self):
        self.hunger = self.hunger - 2
        if self.hunger < 0:
            self.hunger = 0

    def play(self):
        self.mood = self.mood + 2
        self.hunger = self.hunger + 1

    def wait(self):
        self.hunger = self.hunger + 1
        self.mood = self.mood - 1


def pet_state(actions):
    pet = Pet()
    for action in actions:
        if action == "feed":
            pet.feed()
        elif action == "play":
            pet.play()
        elif action == "wait":
            pet.wait()
    return [pet.hunger, pet.mood]

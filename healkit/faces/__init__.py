"""What people and other programs touch: they parse, call and show."""

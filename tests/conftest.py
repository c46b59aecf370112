"""What holds for all tests: an example of a property may take as long as a busy machine needs."""

from hypothesis import settings

settings.register_profile("unhurried", parent=settings(), deadline=None)
settings.load_profile("unhurried")

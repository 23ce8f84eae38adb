"""Settings that every test shares."""

from hypothesis import settings

# no deadline: the first call of a kernel may compile it
settings.register_profile("bica", deadline=None, max_examples=60)
settings.load_profile("bica")

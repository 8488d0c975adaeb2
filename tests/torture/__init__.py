"""The recorder's torture: real trainings that are hit by everything that hits trainings, each followed by the truth."""

"""The benchmark's runner: which cells, against which targets, and what came of it."""

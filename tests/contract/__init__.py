"""Tests of the contract room: what loads, what is refused, and the sentence and place of each refusal."""

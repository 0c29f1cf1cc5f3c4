"""A small legacy directory API to try the gateway on: `backend` and `people` know nothing of it; `run` starts both."""

"""A small legacy directory API to try the gateway on; it knows nothing of the gateway and could be anyone's."""

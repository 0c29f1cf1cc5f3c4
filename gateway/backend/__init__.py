"""The backend room: values that cross, accepted input to request, and sending it."""

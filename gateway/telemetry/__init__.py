"""The telemetry room: records what an Outcome or the relay already says."""

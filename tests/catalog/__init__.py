"""What tools say of themselves."""

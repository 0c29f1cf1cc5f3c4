"""The operators' page on the admin listener: what is served and what it saves, and a panel that tries a tool."""

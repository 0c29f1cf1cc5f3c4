"""The authoring room: tools for who writes contracts. They read files and give values and text; they serve nothing."""

"""The MCP server: tools, transports, and how outcomes look to a model."""

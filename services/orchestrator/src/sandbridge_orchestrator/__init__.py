"""The MCP server: edge, bridge, policy, results."""

"""What every Sandbridge process needs: errors, ports, settings, audit, logs."""

"""JavaScript runtimes: what runs the guest. Which walls stand around it is the engine's business."""

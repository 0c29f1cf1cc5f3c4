"""What is under deploy/: the image, its locks, compose, Kubernetes, the chart, the unit. Knows no running gateway."""

module mooring/lab/definitions

go 1.26.0

require (
	github.com/prometheus-operator/prometheus-operator v0.90.1
	k8s.io/autoscaler/vertical-pod-autoscaler v1.8.1
)

{{/* What a schema cannot see: values that fit one by one and not together. */}}
{{- define "toolview.refusals" -}}
{{- if ge (int .Values.drainSeconds) (int .Values.terminationGracePeriodSeconds) }}
{{- fail "`drainSeconds` has to be less than `terminationGracePeriodSeconds`, or the pod is killed before it may end" }}
{{- end }}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) }}
{{- fail "`autoscaling.minReplicas` is more than `autoscaling.maxReplicas`" }}
{{- end }}
{{- $taken := list (int .Values.ports.tools) (int .Values.ports.admin) }}
{{- range $backend, $port := .Values.ports.passthrough }}
{{- $taken = append $taken (int $port.container) }}
{{- end }}
{{- if ne (len $taken) (len (uniq $taken)) }}
{{- fail "two of `ports` are the same port of the pod" }}
{{- end }}
{{- if gt (len (toJson .Values.contract)) 1048576 }}
{{- fail "`contract` is larger than a ConfigMap may be (1 MiB)" }}
{{- end }}
{{- end }}

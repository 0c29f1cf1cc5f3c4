{{/* Names and blocks that several templates share. */}}
{{- define "toolview.name" -}}
{{- if contains "toolview" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-toolview" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "toolview.selector" -}}
app.kubernetes.io/name: toolview
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "toolview.labels" -}}
{{ include "toolview.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{- define "toolview.configMap" -}}
{{- if .Values.existingConfigMap }}{{ .Values.existingConfigMap }}{{ else }}{{ include "toolview.name" . }}-contract{{ end -}}
{{- end }}

{{- define "toolview.image" -}}
{{- with .Values.image }}{{ if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}{{ end -}}
{{- end }}

{{/* The gateway's container. As a sidecar it has no preStop: its turn comes after the API's. */}}
{{- define "toolview.container" -}}
- name: toolview
  image: {{ include "toolview.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  {{- if .Values.api.image }}
  restartPolicy: Always
  {{- end }}
  args: {{ concat (ternary (list "serve" "--watch") (list "serve") (eq .Values.reload "in-place")) .Values.extraArgs | toJson }}
  {{- with .Values.env }}
  env: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.envFrom }}
  envFrom: {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    - {name: tools, containerPort: {{ .Values.ports.tools }}}
    - {name: admin, containerPort: {{ .Values.ports.admin }}}
    {{- range $backend, $port := .Values.ports.passthrough }}
    - {name: {{ $backend | quote }}, containerPort: {{ $port.container }}}
    {{- end }}
  {{- if .Values.api.image }}
  startupProbe: # healthy, not ready: the API that readiness asks for starts only after this has passed
  {{- else }}
  startupProbe:
  {{- end }}
    httpGet: {path: /-/healthy, port: admin, scheme: {{ .Values.adminScheme }}}
    periodSeconds: 1
    failureThreshold: 30
  readinessProbe:
    httpGet: {path: /-/ready, port: admin, scheme: {{ .Values.adminScheme }}}
    periodSeconds: 5
    timeoutSeconds: 2
  livenessProbe:
    httpGet: {path: /-/healthy, port: admin, scheme: {{ .Values.adminScheme }}}
    periodSeconds: 10
    timeoutSeconds: 2
  {{- if and (not .Values.api.image) .Values.drainSeconds }}
  lifecycle:
    preStop: {exec: {command: [sleep, {{ .Values.drainSeconds | quote }}]}}
  {{- end }}
  resources: {{- toYaml .Values.resources | nindent 4 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    readOnlyRootFilesystem: true
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL]}
    seccompProfile: {type: RuntimeDefault}
  volumeMounts:
    - {name: contract, mountPath: /etc/toolview, readOnly: true}
    {{- with .Values.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

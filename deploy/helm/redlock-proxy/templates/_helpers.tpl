{{- define "redlock.name" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* What selects the pods of a component: (list . "master"). */}}
{{- define "redlock.select" -}}
app.kubernetes.io/name: redlock-proxy
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "redlock.labels" -}}
{{ include "redlock.select" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "redlock.mastersSecret" -}}
{{ .Values.masters.existingSecret | default (printf "%s-masters" (include "redlock.name" .)) }}
{{- end -}}

{{- define "redlock.settingsSecret" -}}
{{ .Values.existingSettings | default (include "redlock.name" .) }}
{{- end -}}

{{- define "redlock.image" -}}
{{ .Values.proxies.image.repository }}:{{ .Values.proxies.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* What every pod has: it runs as this user, and gets nothing that it does not need. */}}
{{- define "redlock.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ . }}
  runAsGroup: {{ . }}
  fsGroup: {{ . }}
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "redlock.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

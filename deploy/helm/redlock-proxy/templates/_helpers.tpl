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

{{/* Protected mode, true or false: as protectedMode says, and on where clients have to log in. The chart does not render if neither is said. */}}
{{- define "redlock.protectedMode" -}}
{{- if hasKey .Values.settings "protected-mode" -}}
{{- fail "settings.protected-mode: the chart decides it; set protectedMode instead" -}}
{{- end -}}
{{- $login := .Values.users.existingSecret -}}
{{- range list "acl-file" "client-password-file" "tls-client-ca" -}}
{{- $login = or $login (get $.Values.settings .) -}}
{{- end -}}
{{- if kindIs "bool" .Values.protectedMode -}}
{{- if and .Values.protectedMode (not $login) (not .Values.settings.upstream) (not .Values.existingSettings) -}}
{{- fail "protectedMode: true turns all clients away, because nobody can log in at a proxy without an upstream and without users; name a secret with users in users.existingSecret, or set protectedMode: false" -}}
{{- end -}}
{{- .Values.protectedMode -}}
{{- else if $login -}}
true
{{- else -}}
{{- fail "protectedMode: clients come from other pods, and nothing says that they have to log in; name a secret with users in users.existingSecret, or set protectedMode: true if the upstream demands a password of clients, or protectedMode: false if only trusted clients reach the proxies" -}}
{{- end -}}
{{- end -}}

{{- define "redlock.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "redlock.name" .) "default" .Values.serviceAccount.create) }}
{{- end -}}

{{/* What every pod has: it runs as this user, and gets nothing that it does not need: (list . 65532). */}}
{{- define "redlock.pod" -}}
serviceAccountName: {{ include "redlock.serviceAccount" (index . 0) }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ index . 1 }}
  runAsGroup: {{ index . 1 }}
  fsGroup: {{ index . 1 }}
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* What a container of the proxy's image reads: its settings, and the files that they name. */}}
{{- define "redlock.mounts" -}}
- {name: settings, mountPath: /etc/redlock-proxy, readOnly: true}
{{- with .Values.proxies.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "redlock.volumes" -}}
- name: settings
  secret: {secretName: {{ include "redlock.settingsSecret" . }}, defaultMode: 0440}
{{- with .Values.proxies.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "redlock.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{/* The name of the program, for labels. */}}
{{- define "gpu-batch.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name of the objects. 40 characters leave room for the suffixes. */}}
{{- define "gpu-batch.fullname" -}}
{{- $name := include "gpu-batch.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* What the pods are selected by; it must never change. */}}
{{- define "gpu-batch.selector" -}}
app.kubernetes.io/name: {{ include "gpu-batch.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gpu-batch.labels" -}}
{{ include "gpu-batch.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "gpu-batch.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "gpu-batch.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is needed where serviceAccount.create is false: every pod that runs as the account \"default\" would have the rights of the scheduler" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "gpu-batch.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* The configuration file: the user's values, and what must agree with other objects. */}}
{{- define "gpu-batch.configuration" -}}
{{- $election := default dict .Values.configuration.leaderElection }}
{{- if and (gt (int .Values.replicas) 1) (eq (toString $election.enabled) "false") }}
{{- fail "configuration.leaderElection.enabled: false needs replicas: 1, or several replicas act at once" }}
{{- end }}
{{- $lease := dict "namespace" .Release.Namespace "name" (include "gpu-batch.fullname" .) }}
{{- $head := dict "apiVersion" "gpu-batch.io/v1alpha1" "kind" "Configuration" }}
{{- $_ := set $head "serveAddress" (printf "%s:%d" .Values.serve.address (int .Values.serve.port)) }}
{{- $_ := set $head "leaderElection" $lease }}
{{- if .Values.extender.enabled }}
{{- if gt (int .Values.replicas) 1 }}
{{- fail "extender.enabled needs replicas: 1: its Service does not know which of several replicas acts" }}
{{- end }}
{{- $files := "/etc/gpu-batch-extender" }}
{{- $extender := dict "certificateFile" (printf "%s/tls.crt" $files) "privateKeyFile" (printf "%s/tls.key" $files) }}
{{- $_ := set $extender "clientAuthorityFile" (printf "%s/ca.crt" $files) }}
{{- $_ := set $extender "serveAddress" (printf "%s:%d" .Values.serve.address (int .Values.extender.port)) }}
{{- $_ := set $head "extender" $extender }}
{{- end }}
{{- merge $head (deepCopy .Values.configuration) | toYaml }}
{{- end }}

{{- define "gpuscope.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "gpuscope.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := include "gpuscope.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gpuscope.selector" -}}
app.kubernetes.io/name: {{ include "gpuscope.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gpuscope.labels" -}}
{{ include "gpuscope.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "gpuscope.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "gpuscope.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* ADDRESS:PORT, as --listen takes it. */ -}}
{{- define "gpuscope.address" -}}
{{- $address := index . 0 }}
{{- if contains ":" $address }}{{ $address = printf "[%s]" $address }}{{ end }}
{{- printf "%s:%d" $address (int (index . 1)) }}
{{- end }}

{{- /* Not empty where env itself says what OTLP says of who sends. */ -}}
{{- define "gpuscope.namesResource" -}}
{{- range .Values.env }}{{ if eq .name "OTEL_RESOURCE_ATTRIBUTES" }}yes{{ end }}{{ end }}
{{- end }}

{{- /* Values that would not do what they say. */ -}}
{{- define "gpuscope.check" -}}
{{- range $key, $value := dict "listen" "listenAddress and port" "health_listen" "healthPort" "telemetry_path" "telemetryPath" "web_config" "webConfigSecret" }}
{{- if regexMatch (printf "(?m)^[ \\t]*[\"']?%s[\"']?[ \\t]*=" $key) $.Values.config }}
{{- fail (printf "config: %s is said by %s, not in config" $key $value) }}
{{- end }}
{{- end }}
{{- if eq (int .Values.port) (int .Values.healthPort) }}
{{- fail "healthPort: it is the same as port" }}
{{- end }}
{{- if and (eq .Values.scheme "HTTPS") (not .Values.webConfigSecret) }}
{{- fail "scheme: HTTPS needs webConfigSecret, with a tls_server_config in its web.yml" }}
{{- end }}
{{- if and .Values.serviceMonitor.basicAuth (not .Values.webConfigSecret) }}
{{- fail "serviceMonitor.basicAuth: without webConfigSecret nobody asks for a password" }}
{{- end }}
{{- if and .Values.serviceMonitor.tlsConfig (ne .Values.scheme "HTTPS") }}
{{- fail "serviceMonitor.tlsConfig: it needs scheme HTTPS" }}
{{- end }}
{{- end }}

{{- define "quarterdeck.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "quarterdeck.fullname" -}}
{{- $name := include "quarterdeck.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* Labels by which Services and policies select pods: they never change. */ -}}
{{- define "quarterdeck.selector" -}}
app.kubernetes.io/name: {{ include "quarterdeck.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "quarterdeck.labels" -}}
{{ include "quarterdeck.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: quarterdeck
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "quarterdeck.image" -}}
{{- $registry := .Values.image.registry | default (dig "imageRegistry" "" (.Values.global | default dict)) -}}
{{- with $registry }}{{ . }}/{{ end -}}
{{- .Values.image.repository -}}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end -}}

{{- define "quarterdeck.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "quarterdeck.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | required "Set serviceAccount.name to an existing ServiceAccount, or serviceAccount.create to true." -}}
{{- end -}}
{{- end -}}

{{- /* The restricted profile of Pod Security. */ -}}
{{- define "quarterdeck.podSecurity" -}}
runAsNonRoot: true
{{- with . }}
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "quarterdeck.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "quarterdeck.secretKeyRef" -}}
valueFrom: {secretKeyRef: {name: {{ index . 0 | quote }}, key: {{ index . 1 | quote }}}}
{{- end -}}

{{- /* Environment of every container of the image. A variable stands before those that name it. */ -}}
{{- define "quarterdeck.env" -}}
{{- $own := include "quarterdeck.fullname" . -}}
{{- $host := .Values.host | required "Set host to the name that people type, such as quarterdeck.example.com." -}}
{{- $db := .Values.database -}}
{{- $valkey := .Values.valkey -}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- {name: QUARTERDECK_ALLOWED_HOSTS, value: "{{ $host }},{{ $own }}-web,$(POD_IP),[$(POD_IP)]"} # probes and Prometheus use the address
- {name: QUARTERDECK_TRUSTED_ORIGINS, value: "https://{{ $host }}"}
- {name: QUARTERDECK_PUBLIC_URL, value: "https://{{ $host }}"}
- {name: QUARTERDECK_PROXIES, value: {{ .Values.proxies | quote }}}
- name: QUARTERDECK_SECRET_KEY
  {{ include "quarterdeck.secretKeyRef" (list (.Values.secretKey.existingSecret | default $own) .Values.secretKey.key) }}
{{- if and $db.urlKey (not .Values.trial.enabled) }}
- name: DATABASE_URL
  {{ include "quarterdeck.secretKeyRef" (list ($db.existingSecret | required "Set database.existingSecret to the Secret that has database.urlKey.") $db.urlKey) }}
{{- else if .Values.trial.enabled }}
- name: PGPASSWORD
  {{ include "quarterdeck.secretKeyRef" (list $own "postgres-password") }}
- {name: DATABASE_URL, value: "postgres://quarterdeck@{{ $own }}-postgres:5432/quarterdeck?sslmode=disable"}
{{- else }}
- name: PGPASSWORD
  {{ include "quarterdeck.secretKeyRef" (list ($db.existingSecret | required "Set database.existingSecret to the Secret that has the password of database.user.") $db.passwordKey) }}
- name: DATABASE_URL
  value: "postgres://{{ $db.user }}@{{ $db.host | required "Set database.host, or database.urlKey, or trial.enabled for a bundled PostgreSQL and Valkey." }}:{{ $db.port }}/{{ $db.name }}?sslmode={{ $db.sslmode }}
  {{- if and .Values.caBundle.configMap (hasPrefix "verify" $db.sslmode) }}&sslrootcert=/etc/quarterdeck/ca/{{ .Values.caBundle.key }}{{ end }}"
{{- end }}
{{- if .Values.trial.enabled }}
- {name: REDIS_URL, value: "redis://{{ $own }}-valkey:6379/0"}
{{- else if $valkey.urlKey }}
- name: REDIS_URL
  {{ include "quarterdeck.secretKeyRef" (list ($valkey.existingSecret | required "Set valkey.existingSecret to the Secret that has valkey.urlKey.") $valkey.urlKey) }}
{{- else }}
{{- if $valkey.passwordKey }}
- name: VALKEY_PASSWORD
  {{ include "quarterdeck.secretKeyRef" (list ($valkey.existingSecret | required "Set valkey.existingSecret to the Secret that has valkey.passwordKey.") $valkey.passwordKey) }}
{{- end }}
- name: REDIS_URL
  value: "{{ ternary "rediss" "redis" $valkey.tls }}://{{ if $valkey.passwordKey }}:$(VALKEY_PASSWORD)@{{ end }}
  {{- $valkey.host | required "Set valkey.host, or valkey.urlKey, or trial.enabled for a bundled PostgreSQL and Valkey." }}:{{ $valkey.port }}/{{ $valkey.database }}"
{{- end }}
{{- with .Values.tokenPeppers.existingSecret }}
- name: QUARTERDECK_TOKEN_PEPPERS
  {{ include "quarterdeck.secretKeyRef" (list . $.Values.tokenPeppers.key) }}
{{- end }}
{{- with .Values.smtp.existingSecret }}
- name: QUARTERDECK_SMTP_URL
  {{ include "quarterdeck.secretKeyRef" (list . $.Values.smtp.urlKey) }}
{{- end }}
{{- with .Values.caBundle }}
{{- if .configMap }}
- {name: SSL_CERT_FILE, value: "/etc/quarterdeck/ca/{{ .key }}"}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- {name: {{ $name }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "quarterdeck.volumeMounts" -}}
- {name: data, mountPath: /data}
- {name: tmp, mountPath: /tmp}
{{- if .Values.secrets.existingSecret }}
- {name: secrets, mountPath: /etc/quarterdeck/secrets, readOnly: true}
{{- end }}
{{- if .Values.kubeconfigs.existingSecret }}
- {name: kubeconfigs, mountPath: /etc/quarterdeck/kubeconfigs, readOnly: true}
{{- end }}
{{- range $index, $name := .Values.clusterSecrets }}
- {name: cluster-{{ $index }}, mountPath: "/etc/quarterdeck/clusters/{{ $name }}", readOnly: true}
{{- end }}
{{- if .Values.caBundle.configMap }}
- {name: ca, mountPath: /etc/quarterdeck/ca, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "quarterdeck.volumes" -}}
- {name: data, emptyDir: {}}
- {name: tmp, emptyDir: {}}
{{- with .Values.secrets.existingSecret }}
- {name: secrets, secret: {secretName: {{ . | quote }}, defaultMode: 0440}}
{{- end }}
{{- with .Values.kubeconfigs.existingSecret }}
- {name: kubeconfigs, secret: {secretName: {{ . | quote }}, defaultMode: 0440}}
{{- end }}
{{- range $index, $name := .Values.clusterSecrets }}
- {name: cluster-{{ $index }}, secret: {secretName: {{ $name | quote }}, defaultMode: 0440}}
{{- end }}
{{- with .Values.caBundle.configMap }}
- {name: ca, configMap: {name: {{ . | quote }}}}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Digest of the Secrets and the ConfigMap that processes read once, at their start. Helm reads them from the cluster, so
       that an upgrade restarts pods after a change of one. Where the chart is only rendered it is always the same. */ -}}
{{- define "quarterdeck.checksum" -}}
{{- $data := list -}}
{{- range $values := list .Values.secretKey .Values.database .Values.valkey .Values.tokenPeppers .Values.smtp -}}
{{- with $values.existingSecret -}}{{- $data = append $data (lookup "v1" "Secret" $.Release.Namespace .).data -}}{{- end -}}
{{- end -}}
{{- with .Values.caBundle.configMap -}}{{- $data = append $data (lookup "v1" "ConfigMap" $.Release.Namespace .).data -}}{{- end -}}
{{- $data | toJson | sha256sum -}}
{{- end -}}

{{- /* One container of the image: (list ROOT NAME COMMAND RESOURCES EXTRA-ENV) */ -}}
{{- define "quarterdeck.container" -}}
{{- $root := index . 0 -}}
- name: {{ index . 1 }}
  image: {{ include "quarterdeck.image" $root | quote }}
  imagePullPolicy: {{ $root.Values.image.pullPolicy }}
  command: {{ index . 2 | toJson }}
  env:
    {{- include "quarterdeck.env" $root | nindent 4 }}
    {{- with index . 4 }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  resources: {{ index . 3 | toJson }}
  securityContext:
    {{- include "quarterdeck.containerSecurity" $root | nindent 4 }}
  volumeMounts:
    {{- include "quarterdeck.volumeMounts" $root | nindent 4 }}
{{- end -}}

{{- /* Each Secret that a value names and the cluster lacks, as a JSON list of sentences. Empty where the chart is only
       rendered. A missing Secret is no error: another tool may make it later. */ -}}
{{- define "quarterdeck.missingSecrets" -}}
{{- $found := list -}}
{{- if lookup "v1" "Namespace" "" .Release.Namespace -}}
{{- $values := .Values -}}
{{- $wanted := list (list "secretKey.existingSecret" $values.secretKey.existingSecret $values.secretKey.key) (list "tokenPeppers.existingSecret" $values.tokenPeppers.existingSecret $values.tokenPeppers.key) (list "smtp.existingSecret" $values.smtp.existingSecret $values.smtp.urlKey) (list "kubeconfigs.existingSecret" $values.kubeconfigs.existingSecret "") (list "secrets.existingSecret" $values.secrets.existingSecret "") (list "metrics.serviceMonitor.tokenSecret" $values.metrics.serviceMonitor.tokenSecret "") -}}
{{- if not $values.trial.enabled -}}
{{- $wanted = append $wanted (list "database.existingSecret" $values.database.existingSecret ($values.database.urlKey | default $values.database.passwordKey)) -}}
{{- $wanted = append $wanted (list "valkey.existingSecret" $values.valkey.existingSecret ($values.valkey.urlKey | default $values.valkey.passwordKey)) -}}
{{- end -}}
{{- if $values.ingress.enabled -}}{{- $wanted = append $wanted (list "ingress.tlsSecret" $values.ingress.tlsSecret "") -}}{{- end -}}
{{- range $name := $values.clusterSecrets -}}{{- $wanted = append $wanted (list "clusterSecrets" $name "") -}}{{- end -}}
{{- range $each := $wanted -}}
{{- $value := index $each 0 -}}{{- $name := index $each 1 -}}{{- $key := index $each 2 -}}
{{- if $name -}}
{{- $secret := lookup "v1" "Secret" $.Release.Namespace $name -}}
{{- if not $secret -}}
{{- $found = append $found (printf "%s names the Secret %s, which does not exist." $value $name) -}}
{{- else if and $key (not (hasKey ($secret.data | default dict) $key)) -}}
{{- $found = append $found (printf "%s names the Secret %s, which has no key %s." $value $name $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

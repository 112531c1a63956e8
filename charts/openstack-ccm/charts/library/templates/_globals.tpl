{{/*
Values of an umbrella chart under `global` are laid over the values of a chart: included at
the head of each template that reads values. A value that the chart sets wins, except for
labels of nodeSelector, which are merged, and switches, which are on if either is on;
deckhouse.names is off if either is off. With deckhouse.enabled, Secrets without a name are those
of Deckhouse.
*/}}
{{- define "library.globals" -}}
{{- $global := .Values.global | default dict }}
{{- if dig "deckhouse" "enabled" false $global }}
{{- $_ := set .Values.deckhouse "enabled" true }}
{{- end }}
{{- if not (dig "deckhouse" "names" true $global) }}
{{- $_ := set .Values.deckhouse "names" false }}
{{- end }}
{{- if and $global.imageRegistry (not .Values.image) }}
{{- $_ := set .Values "image" (printf "%s/%s:%s" $global.imageRegistry .Chart.Name .Chart.AppVersion) }}
{{- end }}
{{- if not .Values.imagePullSecrets }}
{{- $deckhouse := ternary (list "deckhouse-registry") list .Values.deckhouse.enabled }}
{{- $_ := set .Values "imagePullSecrets" ($global.imagePullSecrets | default $deckhouse) }}
{{- end }}
{{- $_ := set .Values "nodeSelector" (merge dict ($global.nodeSelector | default dict) .Values.nodeSelector) }}
{{- range $key := list "clusterID" "clusterUUID" }}
{{- if and $global.clusterID (hasKey $.Values $key) (not (index $.Values $key)) }}
{{- $_ := set $.Values $key $global.clusterID }}
{{- end }}
{{- end }}
{{- if and (hasKey .Values "replicas") $global.controlPlaneNodes }}
{{- $_ := set .Values "replicas" $global.controlPlaneNodes }}
{{- end }}
{{- if hasKey .Values "kubeApiServer" }}
{{- $server := $global.kubeApiServer | default dict }}
{{- if or $server.host $server.fromHostIP }}
{{- $_ := set .Values "kubeApiServer" $server }}
{{- end }}
{{- end }}
{{- include "library.globalProxy" . }}
{{- include "library.globalCloudConfig" . }}
{{- include "library.globalParent" . }}
{{- end -}}

{{/* URLs of the chart win together; hosts that are reached directly are merged. */}}
{{- define "library.globalProxy" -}}
{{- $proxy := dig "proxy" dict (.Values.global | default dict) | default dict }}
{{- with .Values.proxy }}
{{- if not (or .httpProxy .httpsProxy) }}
{{- $_ := set . "httpProxy" ($proxy.httpProxy | default "") }}
{{- $_ := set . "httpsProxy" ($proxy.httpsProxy | default "") }}
{{- end }}
{{- $_ := set . "noProxy" (concat (.noProxy | default list) ($proxy.noProxy | default list) | uniq) }}
{{- end }}
{{- end -}}

{{- define "library.globalCloudConfig" -}}
{{- $global := .Values.global | default dict }}
{{- $own := .Values.cloudConfig | default dict }}
{{- $needs := ne (index .Chart.Annotations "mooring.io/credentials") "none" }}
{{- if and $needs (hasKey .Values "cloudConfig") (hasKey $global "cloudConfig") (not (or $own.secretName $own.text)) }}
{{- $name := ternary "cloud-controller-manager" "cloud-config" .Values.deckhouse.enabled }}
{{- $key := ternary "cloud-config" "cloud.conf" .Values.deckhouse.enabled }}
{{- $_ := set $own "secretName" ($global.cloudConfig.secretName | default $name) }}
{{- $_ := set $own "key" ($global.cloudConfig.key | default $key) }}
{{- end }}
{{- end -}}

{{/*
The parent cluster of DVP. A Secret without a name is that of the reference, with its keys;
capdvp has one of its own with deckhouse.enabled, or if the umbrella creates it.
*/}}
{{- define "library.globalParent" -}}
{{- $global := .Values.global | default dict }}
{{- $own := .Values.parent | default dict }}
{{- if and (hasKey .Values "parent") (hasKey $global "parent") }}
{{- $parent := $global.parent }}
{{- if not $own.namespace }}
{{- $_ := set $own "namespace" ($parent.namespace | default "") }}
{{- end }}
{{- if not $own.secretName }}
{{- $named := index ($parent.secretNames | default dict) .Chart.Name | default $parent.secretName }}
{{- $apart := and (eq .Chart.Name "capdvp") (or .Values.deckhouse.enabled $parent.capdvpKubeconfig) }}
{{- $_ := set $own "secretName" ($named | default (ternary "dvp-credentials-capdvp" "dvp-credentials" (not (not $apart)))) }}
{{- $_ := set $own "key" ($parent.key | default (ternary "kubeconfig" "kubernetesConfigBase64" (not (not $named)))) }}
{{- end }}
{{- end }}
{{- if and (hasKey .Values "zones") (not .Values.zones) $global.zones }}
{{- $_ := set .Values "zones" $global.zones }}
{{- end }}
{{- if and (hasKey .Values "moduleConfig") (not (dig "zones" "" .Values.moduleConfig)) $global.zones }}
{{- $_ := set .Values.moduleConfig "zones" $global.zones }}
{{- end }}
{{- end -}}

{{/* A container of the Kubernetes project: image and version, from the registry of global. */}}
{{- define "library.sidecarImage" -}}
{{- $registry := dig "sidecarRegistry" "" (.Values.global | default dict) }}
{{- $image := ternary (printf "%s/%s" $registry (base .sidecar.image)) .sidecar.image (ne $registry "") }}
{{- printf "%s%s%s" $image (ternary "@" ":" (hasPrefix "sha256:" .sidecar.version)) .sidecar.version | quote }}
{{- end -}}

{{/*
"sidecar" or "builtin": the mode that is set; otherwise the container runs with
deckhouse.enabled, and where its image is configured.
*/}}
{{- define "library.mode" -}}
{{- .mode | default (ternary "sidecar" "builtin" (or .Values.deckhouse.enabled (ne .image ""))) }}
{{- end -}}

{{/* Variables that replace the address of the API server in a pod. */}}
{{- define "library.apiServer" -}}
{{- with .Values.kubeApiServer }}
{{- if or .host .fromHostIP }}
- name: KUBERNETES_SERVICE_HOST
  {{- if .host }}
  value: {{ .host | quote }}
  {{- else }}
  valueFrom:
    fieldRef:
      fieldPath: status.hostIP
  {{- end }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ .port | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
Variables of an HTTP proxy, for a container that connects to more than the API server. They follow
those of library.apiServer, since NO_PROXY refers to the host that applies in the container.
*/}}
{{- define "library.proxy" -}}
{{- with .Values.proxy }}
{{- range $field, $url := dict "httpProxy" .httpProxy "httpsProxy" .httpsProxy }}
{{- if contains "@" $url }}
{{- fail (printf "proxy.%s: invalid value [redacted]: must be a URL without user name and password, which the pod would show in plain text" $field) }}
{{- end }}
{{- end }}
{{- if or .httpProxy .httpsProxy }}
{{- $direct := list "127.0.0.1" "::1" "localhost" "169.254.169.254" "$(KUBERNETES_SERVICE_HOST)" ".svc" ".cluster.local" }}
{{- $hosts := concat $direct .noProxy | uniq | join "," }}
{{- range $name, $value := dict "HTTP_PROXY" .httpProxy "HTTPS_PROXY" .httpsProxy "NO_PROXY" $hosts }}
{{- if $value }}
- name: {{ $name }}
  value: {{ $value | quote }}
- name: {{ lower $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "library.imagePullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end -}}

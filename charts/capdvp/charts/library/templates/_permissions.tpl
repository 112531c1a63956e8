{{/*
A manifest of ServiceAccounts, roles and bindings: context, text with the names of
library.program. With Deckhouse's names, ServiceAccounts and what has no namespace are renamed,
and each object has Deckhouse's labels.
*/}}
{{- define "library.permissions" -}}
{{- $context := .context }}
{{- if not (include "library.hasDeckhouseNames" $context) }}
{{- .text }}
{{- else }}
{{- range $part := regexSplit "(?m)^---$" .text -1 }}
{{- $object := fromYaml $part }}
{{- $isShared := and (eq $object.kind "ServiceAccount") (include "library.umbrellaHasAccount" $context) }}
{{- if not $isShared }}
---
{{ include "library.renamed" (dict "context" $context "object" $object) }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "library.renamed" -}}
{{- $context := .context }}
{{- $object := .object }}
{{- $account := include "library.serviceAccount" $context }}
{{- $_ := set $object.metadata "labels" (merge (include "library.labels" $context | fromYaml) ($object.metadata.labels | default dict)) }}
{{- if eq $object.kind "ServiceAccount" }}
{{- $_ := set $object.metadata "name" $account }}
{{- else if hasPrefix "Cluster" $object.kind }}
{{- $_ := set $object.metadata "name" (include "library.clusterName" (dict "context" $context "name" $object.metadata.name)) }}
{{- end }}
{{- with $object.roleRef }}
{{- if eq .kind "ClusterRole" }}
{{- $_ := set . "name" (include "library.clusterName" (dict "context" $context "name" .name)) }}
{{- end }}
{{- end }}
{{- range $object.subjects }}
{{- if and (eq .kind "ServiceAccount") (eq .name (include "library.program" $context)) }}
{{- $_ := set . "name" $account }}
{{- end }}
{{- end }}
{{- toYaml $object }}
{{- end -}}

{{/*
"true" if an umbrella chart creates the ServiceAccount that components share with Deckhouse's names.
Only an umbrella has global.imageRegistry.
*/}}
{{- define "library.umbrellaHasAccount" -}}
{{- $isShared := index .Chart.Annotations "mooring.io/deckhouse-account" }}
{{- if and $isShared (include "library.hasDeckhouseNames" .) (hasKey (.Values.global | default dict) "imageRegistry") }}true{{ end }}
{{- end -}}

{{/*
The ServiceAccount that csi-controller and csi-node share with Deckhouse's names; for an umbrella
chart.
*/}}
{{- define "library.csiAccount" -}}
{{- $deckhouse := .Values.global.deckhouse }}
{{- $components := .Values.components }}
{{- if and $deckhouse.enabled (dig "names" true $deckhouse) (or (index $components "csi-controller") (index $components "csi-node")) }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: csi
  namespace: {{ .Release.Namespace | quote }}
  labels:
    app: csi
    app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
    heritage: deckhouse
    module: {{ include "library.module" . }}
{{- end }}
{{- end -}}

{{/*
Fails if the workload exists and is not of this project: helm --take-ownership would leave its
containers in the pods, beside those of this chart.
*/}}
{{- define "library.ownWorkload" -}}
{{- $kind := index .Chart.Annotations "mooring.io/workload" | default "Deployment" }}
{{- $name := include "library.name" . }}
{{- $live := lookup "apps/v1" $kind .Release.Namespace $name }}
{{- $isOwn := hasKey (dig "metadata" "labels" dict $live) "app.kubernetes.io/name" }}
{{- $release := dig "metadata" "annotations" "meta.helm.sh/release-name" "" $live }}
{{- if and $live (not $isOwn) (ne $release .Release.Name) }}
{{- $remedy := ternary "deleted, or deckhouse.names must be false" "deleted" (ne (include "library.hasDeckhouseNames" .) "") }}
{{- fail (printf "%s %s/%s: exists, and is not of this chart: must be %s" $kind .Release.Namespace $name $remedy) }}
{{- end }}
{{- include "library.oneNamespace" (dict "context" . "kind" $kind "workload" $name) }}
{{- end -}}

{{/*
Fails if a release in another namespace runs the component: context, kind, workload. helm
--take-ownership would give its permissions to this release, and both programs would run.
*/}}
{{- define "library.oneNamespace" -}}
{{- $context := .context }}
{{- $program := include "library.program" $context }}
{{- range $name := list $program (printf "%s:external-provisioner" $program) }}
{{- $binding := lookup "rbac.authorization.k8s.io/v1" "ClusterRoleBinding" "" (include "library.clusterName" (dict "context" $context "name" $name)) }}
{{- $annotations := dig "metadata" "annotations" dict $binding }}
{{- $home := get $annotations "meta.helm.sh/release-namespace" }}
{{- if and $home (ne $home $context.Release.Namespace) }}
{{- if hasKey (dig "metadata" "labels" dict (lookup "apps/v1" $.kind $home $.workload)) "app.kubernetes.io/name" }}
{{- $release := get $annotations "meta.helm.sh/release-name" }}
{{- fail (printf "namespace: invalid value %q: must be %q, where the release %s has the %s %s: a cluster must have one release" $context.Release.Namespace $home $release $.kind $.workload) }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

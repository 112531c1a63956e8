{{/* Checks of the credentials in the values. */}}
{{- define "parent.checkValues" -}}
{{- $parent := .Values.global.parent }}
{{- range $field := list "kubeconfig" "capdvpKubeconfig" }}
{{- with index $parent $field }}
{{- $read := fromYaml . }}
{{- if not (and (dig "clusters" "" $read) (dig "users" "" $read) (dig "contexts" "" $read)) }}
{{- fail (printf "global.parent.%s: invalid value [redacted]: must be a kubeconfig with clusters, users and contexts" $field) }}
{{- end }}
{{- if not $parent.namespace }}
{{- fail (printf "global.parent.namespace: not set: must be the namespace of the project in the parent, as global.parent.%s is set" $field) }}
{{- end }}
{{- if not $.Values.global.clusterID }}
{{- fail (printf "global.clusterID: not set: must be the UUID of this cluster, as global.parent.%s is set" $field) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and $parent.capdvpKubeconfig (not $parent.kubeconfig) }}
{{- fail "global.parent.kubeconfig: not set: must be a kubeconfig, as global.parent.capdvpKubeconfig is set" }}
{{- end }}
{{- end -}}

{{/* Checks of an existing Secret: context, and the value `parent` of a component. */}}
{{- define "parent.checkSecret" -}}
{{- $global := .context.Values.global }}
{{- $key := .parent.key }}
{{- $where := printf "%s/%s" .context.Release.Namespace .parent.secretName }}
{{- $live := lookup "v1" "Secret" .context.Release.Namespace .parent.secretName }}
{{- $data := $live.data | default dict }}
{{- if $live }}
{{- if not (hasKey $data $key) }}
{{- fail (printf "global.parent.key: invalid value %q: must be a key of the Secret %s, which has %s" $key $where (keys $data | sortAlpha | join ", ")) }}
{{- end }}
{{- $read := index $data $key | b64dec | fromYaml }}
{{- if not (and (dig "clusters" "" $read) (dig "users" "" $read) (dig "contexts" "" $read)) }}
{{- fail (printf "Secret %s, key %s: invalid value [redacted]: must be a kubeconfig with clusters, users and contexts" $where $key) }}
{{- end }}
{{- end }}
{{- range $row := list (list "global.parent.namespace" .parent.namespace "namespace" "the namespace of the project in the parent") (list "global.clusterID" $global.clusterID "clusterUUID" "the UUID of this cluster") }}
{{- $own := index $data (index $row 2) | default "" | b64dec }}
{{- if not (or (index $row 1) $own) }}
{{- fail (printf "%s: not set: must be %s, unless the Secret %s has the key %s" (index $row 0) (index $row 3) $where (index $row 2)) }}
{{- end }}
{{- if and (index $row 1) $own (ne (index $row 1) $own) }}
{{- fail (printf "%s: invalid value %q: must be %q, as in the key %s of the Secret %s" (index $row 0) (index $row 1) $own (index $row 2) $where) }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Workloads of the reference that run, as a list for a message. */}}
{{- define "parent.checkReference" -}}
{{- $home := "d8-cloud-provider-dvp" }}
{{- $rows := list (list "dvp-ccm" "Deployment" "cloud-controller-manager") (list "capdvp" "Deployment" "capdvp-controller-manager") (list "csi-controller" "Deployment" "csi-controller") (list "csi-node" "DaemonSet" "csi-node") (list "cloud-data-discoverer" "Deployment" "cloud-data-discoverer") }}
{{- range $row := $rows }}
{{- if index $.Values.components (first $row) }}
{{- $live := lookup "apps/v1" (index $row 1) $home (last $row) }}
{{- /* With Deckhouse's names it may be this chart's own. */}}
{{- $isOwn := hasKey (dig "metadata" "labels" dict $live) "app.kubernetes.io/name" }}
{{- if and (not $isOwn) (gt (int (dig "spec" "replicas" 0 $live | default (dig "status" "desiredNumberScheduled" 0 $live))) 0) }}
{{- fail (printf "components.%s: invalid value true: the %s %s/%s of the reference must not run at the same time: docs/migrate-dvp.md" (first $row) (index $row 1) $home (last $row)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* CRDs that another release has installed. */}}
{{- define "parent.checkKinds" -}}
{{- range $name := list "deckhouseclusters.infrastructure.cluster.x-k8s.io" "deckhouseclustertemplates.infrastructure.cluster.x-k8s.io" "deckhousemachines.infrastructure.cluster.x-k8s.io" "deckhousemachinetemplates.infrastructure.cluster.x-k8s.io" "dvpinstanceclasses.deckhouse.io" }}
{{- $live := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name }}
{{- $served := list }}
{{- range $version := dig "spec" "versions" list $live }}
{{- if $version.served }}
{{- $served = append $served $version.name }}
{{- end }}
{{- end }}
{{- if and $live (not (has "v1alpha1" $served)) }}
{{- fail (printf "CustomResourceDefinition %s: served versions %s: must include v1alpha1; it belongs to another release" $name (join ", " $served)) }}
{{- end }}
{{- end }}
{{- end -}}

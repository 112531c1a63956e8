{{/*
Return the value at a path as JSON. Arguments: root, path, public default ("" for none).
A value that the operator computes has no default: a missing or empty one fails with its
path, and so does a secret that still has the public default of the real chart.
*/}}
{{- define "lab.value" -}}
{{- $value := (index . 0).Values -}}
{{- $path := index . 1 -}}
{{- range $key := splitList "." $path -}}
{{- if and (kindIs "map" $value) (hasKey $value $key) -}}
{{- $value = index $value $key -}}
{{- else -}}
{{- fail (printf "values: %s is missing; the operator computes it" $path) -}}
{{- end -}}
{{- end -}}
{{- if or (kindIs "invalid" $value) (eq (toString $value) "") -}}
{{- fail (printf "values: %s is empty; the operator computes it" $path) -}}
{{- end -}}
{{- if and (index . 2) (eq (toString $value) (index . 2)) -}}
{{- fail (printf "values: %s has the public default of the chart" $path) -}}
{{- end -}}
{{- toJson $value -}}
{{- end -}}

{{/* Return the value at a path as text, for a Secret. Arguments as above. */}}
{{- define "lab.text" -}}
{{- $json := include "lab.value" . -}}
{{- $value := (printf "{\"value\":%s}" $json | fromJson).value -}}
{{- ternary $value $json (kindIs "string" $value) | quote -}}
{{- end -}}

{{/* Return "namespace:service" of one endpoint. Arguments: root, endpoint. */}}
{{- define "lab.service" -}}
{{- $root := index . 0 -}}
{{- $endpoint := get $root.Values.endpoints (index . 1) -}}
{{- printf "%s:%s" (default $root.Release.Namespace $endpoint.namespace) $endpoint.hosts.default -}}
{{- end -}}

{{/*
Return the environment of the init container that waits, as a JSON list, as
kubernetes-entrypoint reads it. Arguments: root, key of dependencies.static.
*/}}
{{- define "lab.dependencies" -}}
{{- $root := index . 0 -}}
{{- $needs := get $root.Values.dependencies.static (index . 1) | default dict -}}
{{- $services := list -}}
{{- range $needs.services -}}
{{- $services = append $services (include "lab.service" (list $root .service)) -}}
{{- end -}}
{{- $pods := "" -}}
{{- if $needs.pod -}}{{- $pods = toJson $needs.pod -}}{{- end -}}
{{- list (dict "name" "DEPENDENCY_SERVICE" "value" (join "," $services)) (dict "name" "DEPENDENCY_JOBS" "value" (join "," ($needs.jobs | default list))) (dict "name" "DEPENDENCY_POD_JSON" "value" $pods) | toJson -}}
{{- end -}}

{{/* Return a node selector as JSON. Arguments: root, path below labels. */}}
{{- define "lab.selector" -}}
{{- $root := index . 0 -}}
{{- $at := printf "labels.%s" (index . 1) -}}
{{- $key := include "lab.text" (list $root (printf "%s.node_selector_key" $at) "") -}}
{{- $value := include "lab.text" (list $root (printf "%s.node_selector_value" $at) "") -}}
{{- printf "{%s: %s}" $key $value -}}
{{- end -}}

{{/*
Return the affinity that spreads pods over nodes, as strict as the values say, as JSON.
Arguments: root, application, component.
*/}}
{{- define "lab.affinity" -}}
{{- $root := index . 0 -}}
{{- $labels := dict "application" (index . 1) "component" (index . 2) "release_group" ($root.Values.release_group | default $root.Release.Name) -}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) -}}
{{- $kind := include "lab.value" (list $root "pod.affinity.anti.type.default" "") | trimAll "\"" -}}
{{- $rule := list $term -}}
{{- if hasPrefix "preferred" $kind -}}
{{- $rule = list (dict "weight" 10 "podAffinityTerm" $term) -}}
{{- end -}}
{{- dict "podAntiAffinity" (dict $kind $rule) | toJson -}}
{{- end -}}

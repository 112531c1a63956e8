{{/*
Fails if a CRD of the chart exists in an older form: helm installs CRDs, but does not update them.
Versions of all are compared; fields only of those in the annotation mooring.io/writes, which the
program writes: fields that a CRD does not know are dropped without an error.
*/}}
{{- define "library.checkKinds" -}}
{{- $written := splitList "," (index .Chart.Annotations "mooring.io/writes" | default "") }}
{{- $context := . }}
{{- range $path, $content := .Files.Glob "crds/*.yaml" }}
{{- $desired := $context.Files.Get $path | fromYaml }}
{{- $name := $desired.metadata.name }}
{{- $live := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name }}
{{- $served := dict }}
{{- range dig "spec" "versions" list $live }}
{{- if .served }}
{{- $_ := set $served .name . }}
{{- end }}
{{- end }}
{{- range $version := ternary $desired.spec.versions list (ne (len $live) 0) }}
{{- $missing := "" }}
{{- if not (hasKey $served $version.name) }}
{{- $missing = printf "version %s is not served, but %s" $version.name (keys $served | sortAlpha | join ", ") }}
{{- else if has $name $written }}
{{- $other := index $served $version.name }}
{{- $fields := include "library.missingFields" (dict "desired" $version.schema.openAPIV3Schema "live" $other.schema.openAPIV3Schema "path" "") }}
{{- if $fields }}
{{- $missing = printf "version %s has no field %s" $version.name ($fields | trim | replace " " ", ") }}
{{- end }}
{{- end }}
{{- if $missing }}
{{- fail (printf "CustomResourceDefinition %s: too old: %s: must be updated, which helm does not do: kubectl apply --server-side --force-conflicts -f crds/ of the chart %s" $name $missing $context.Chart.Name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Fields of a schema that another one does not know: paths, each followed by a space. */}}
{{- define "library.missingFields" -}}
{{- $live := .live }}
{{- $path := .path }}
{{- if not (index $live "x-kubernetes-preserve-unknown-fields") }}
{{- $known := $live.properties | default dict }}
{{- range $name, $schema := .desired.properties }}
{{- $field := printf "%s.%s" $path $name | trimPrefix "." }}
{{- if not (hasKey $known $name) }}
{{- printf "%s " $field }}
{{- else }}
{{- include "library.missingFields" (dict "desired" $schema "live" (index $known $name) "path" $field) }}
{{- end }}
{{- end }}
{{- with .desired.items }}
{{- include "library.missingFields" (dict "desired" . "live" ($live.items | default dict) "path" (printf "%s[]" $path)) }}
{{- end }}
{{- end }}
{{- end -}}

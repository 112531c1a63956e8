{{/*
Checks of an umbrella chart that a schema cannot make: ports of the host, and components. ccm:
name of the cloud controller manager. Nothing is created if one fails.
*/}}
{{- define "library.umbrellaChecks" -}}
{{- $ports := dict }}
{{- $ccm := index .Values .ccm }}
{{- $controller := index .Values "csi-controller" }}
{{- $node := index .Values "csi-node" }}
{{- $claims := list }}
{{- if index .Values.components .ccm }}
{{- $claims = append $claims (list (printf "%s.securePort" .ccm) $ccm.securePort) }}
{{- end }}
{{- if index .Values.components "csi-controller" }}
{{- with regexFind "[0-9]+$" $controller.httpEndpoint }}
{{- $claims = append $claims (list "csi-controller.httpEndpoint" .) }}
{{- end }}
{{- $claims = append $claims (list "csi-controller.sidecars.livenessprobe.port" $controller.sidecars.livenessprobe.port) }}
{{- end }}
{{- if index .Values.components "csi-node" }}
{{- $claims = append $claims (list "csi-node.httpEndpoint" (regexFind "[0-9]+$" $node.httpEndpoint)) }}
{{- $claims = append $claims (list "csi-node.livenessprobe.port" $node.livenessprobe.port) }}
{{- end }}
{{- range $claims }}
{{- $field := first . }}
{{- $port := last . | toString }}
{{- with get $ports $port }}
{{- fail (printf "%s: invalid value %q: must be a port of the host that is free, and %s uses it" $field $port .) }}
{{- end }}
{{- $_ := set $ports $port $field }}
{{- end }}
{{- if not (has true (values .Values.components)) }}
{{- fail "components: invalid value: must enable at least one component" }}
{{- end }}
{{- end -}}

{{/*
Note on a Lease that a process holds: component, namespace, name, and document on the migration.
*/}}
{{- define "library.heldLease" -}}
{{- $lease := lookup "coordination.k8s.io/v1" "Lease" .namespace .name }}
{{- with dig "spec" "holderIdentity" "" $lease }}

The Lease {{ $.namespace }}/{{ $.name }} is held by {{ . }}.
If the holder is not a pod of this release, {{ $.component }} waits until it is stopped:
{{ $.document }}.
{{- end }}
{{- end -}}

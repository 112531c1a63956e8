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
Return what values override on nodes with a label, as a JSON list of name, affinity and
conf. Arguments: root, DaemonSet as the overrides call it.
The rows are at conf.overrides.<DaemonSet>.labels, or in charts that can override any
value at overrides.<DaemonSet>.labels.
*/}}
{{- define "lab.overrides" -}}
{{- $root := index . 0 -}}
{{- $daemonset := index . 1 -}}
{{- $conf := $root.Values.conf | default dict -}}
{{- $own := omit $conf "overrides" -}}
{{- $found := list -}}
{{- range dig $daemonset "labels" list ($conf.overrides | default dict) -}}
{{- $found = append $found (dict "key" .label.key "values" .label.values "conf" .conf) -}}
{{- end -}}
{{- range $label, $row := dig $daemonset "labels" dict ($root.Values.overrides | default dict) -}}
{{- $pair := splitList "::" $label -}}
{{- $found = append $found (dict "key" (index $pair 0) "values" (list (index $pair 1)) "conf" $row.values.conf) -}}
{{- end -}}
{{- $rows := list -}}
{{- range $found -}}
{{- $rule := dict "key" .key "operator" "In" "values" .values -}}
{{- $name := printf "%s-%s-%s" ($daemonset | replace "_" "-") .key ($rule | toJson | sha256sum | trunc 8) -}}
{{- $merged := mergeOverwrite (deepCopy $own) (.conf | default dict) -}}
{{- $rows = append $rows (dict "name" $name "affinity" (include "lab.nodes" (list $rule) | fromJson) "conf" $merged) -}}
{{- end -}}
{{- toJson $rows -}}
{{- end -}}

{{/* Return the affinity to nodes that satisfy all rules, as JSON. */}}
{{- define "lab.nodes" -}}
{{- $terms := list (dict "matchExpressions" .) -}}
{{- dict "nodeAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms)) | toJson -}}
{{- end -}}

{{/*
Return the affinity to nodes for which nothing is overridden, as JSON. Arguments as of
lab.overrides.
*/}}
{{- define "lab.other_nodes" -}}
{{- $rules := list -}}
{{- range include "lab.overrides" . | fromJsonArray -}}
{{- range (index .affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms 0).matchExpressions -}}
{{- $rules = append $rules (dict "key" .key "operator" "NotIn" "values" .values) -}}
{{- end -}}
{{- end -}}
{{- if $rules -}}{{- include "lab.nodes" $rules -}}{{- else -}}{}{{- end -}}
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

{{/* Return host and port of a Service. Arguments: root, name, port and path. */}}
{{- define "lab.host" -}}
{{- $root := index . 0 -}}
{{- printf "%s.%s.svc.%s:%s" (index . 1) $root.Release.Namespace $root.Values.endpoints.cluster_domain_suffix (index . 2) -}}
{{- end -}}

{{/* Return the URL of an HTTP service. Arguments as of lab.host. */}}
{{- define "lab.url" -}}
{{- printf "http://%s" (include "lab.host" .) -}}
{{- end -}}

{{/* Return the URL of a database. Arguments: root, endpoint, account, database. */}}
{{- define "lab.database" -}}
{{- $root := index . 0 -}}
{{- $account := get (get $root.Values.endpoints (index . 1)).auth (index . 2) -}}
{{- printf "mysql+pymysql://%s:%s@%s/%s" $account.username $account.password (include "lab.host" (list $root "mariadb" "3306")) (index . 3) -}}
{{- end -}}

{{/* Return the URL of a virtual host of the bus. Arguments: root, account, name. */}}
{{- define "lab.bus" -}}
{{- $root := index . 0 -}}
{{- $endpoint := $root.Values.endpoints.oslo_messaging -}}
{{- $account := get $endpoint.auth (index . 1) -}}
{{- $servers := list -}}
{{- range $number := until (int $endpoint.statefulset.replicas) -}}
{{- $pod := printf "%s-%d.rabbitmq" $endpoint.statefulset.name $number -}}
{{- $servers = append $servers (printf "%s:%s@%s" $account.username $account.password (include "lab.host" (list $root $pod "5672"))) -}}
{{- end -}}
{{- printf "rabbit://%s/%s" (join "," $servers) (index . 2) -}}
{{- end -}}

{{/* Return the servers of the cache: each of a list, or the one Service. */}}
{{- define "lab.cache" -}}
{{- $root := . -}}
{{- $set := $root.Values.endpoints.oslo_cache.statefulset | default dict -}}
{{- $servers := list -}}
{{- range $number := until (int ($set.replicas | default 0)) -}}
{{- $servers = append $servers (include "lab.host" (list $root (printf "%s-%d.memcached" $set.name $number) "11211")) -}}
{{- end -}}
{{- join "," ($servers | default (list (include "lab.host" (list $root "memcached" "11211")))) -}}
{{- end -}}

{{/*
Return a configuration file of oslo.config. Arguments: root, path below conf, sections
that the chart computes. Lists are joined by a comma, options of the type multistring
are repeated.
*/}}
{{- define "lab.oslo_conf" -}}
{{- $tree := (index . 0).Values.conf | default dict -}}
{{- range $key := splitList "." (index . 1) -}}
{{- $tree = get $tree $key | default dict -}}
{{- end -}}
{{- range $section, $options := mergeOverwrite (deepCopy (index . 2)) (deepCopy $tree) -}}
{{- printf "[%s]\n" $section -}}
{{- range $option, $value := $options -}}
{{- if kindIs "slice" $value -}}
{{- printf "%s = %s\n" $option (join "," $value) -}}
{{- else if kindIs "map" $value -}}
{{- range $value.values -}}{{- printf "%s = %v\n" $option . -}}{{- end -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- printf "%s = %v\n" $option $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

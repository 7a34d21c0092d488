{{- /* The first part of the names of objects. Labels do not contain it: the release's name separates pods of two releases. */}}
{{- define "sluice.fullname" -}}
{{ .Values.fullnameOverride | default "sluice" }}
{{- end }}

{{- /* Not empty where objects have other names than the operator's defaults. */}}
{{- define "sluice.renamed" -}}
{{- if ne (include "sluice.fullname" .) "sluice" }}renamed{{ end }}
{{- end }}

{{- /* sluice.clusterName: (list . component): name of an object without a namespace. An earlier release's objects keep their names;
       with an override, the namespace separates releases that have the same override. */}}
{{- define "sluice.clusterName" -}}
{{- $root := index . 0 }}
{{- if include "sluice.renamed" $root }}{{ $root.Release.Namespace }}:{{ end }}{{ include "sluice.fullname" $root }}-{{ index . 1 }}
{{- end }}

{{- /* sluice.selector: (list . component) */}}
{{- define "sluice.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: sluice-{{ index . 1 }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
{{- end }}

{{- /* sluice.labels: (list . component) */}}
{{- define "sluice.labels" -}}
{{- $root := index . 0 }}
{{- include "sluice.selector" . }}
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/part-of: sluice
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ $root.Chart.Name }}-{{ $root.Chart.Version }}
{{- end }}

{{- /* sluice.podMetadata: (list . component values path): metadata of pods; the values at the path have podLabels and podAnnotations.
       A Service, a PodDisruptionBudget or a NetworkPolicy selects pods by the chart's labels or by labels of the operator (sluice.dev/), so
       podLabels must not replace them. */}}
{{- define "sluice.podMetadata" -}}
{{- $own := include "sluice.labels" . | fromYaml }}
{{- $values := index . 2 }}
{{- $path := index . 3 -}}
labels: {{- include "sluice.labels" . | nindent 2 }}
{{- range $key, $value := $values.podLabels }}
{{- if or (hasKey $own $key) (hasPrefix "sluice.dev/" $key) }}
{{- fail (printf "%s.podLabels: %s is a label of Sluice, which selects pods by its labels; use another key" $path $key) }}
{{- end }}
  {{ $key }}: {{ $value | quote }}
{{- end }}
{{- with $values.podAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* sluice.image: (list . component) */}}
{{- define "sluice.image" -}}
{{- $root := index . 0 }}
{{- with $root.Values.image.registry }}{{ . }}/{{ end }}sluice-{{ index . 1 }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}
{{- with index ($root.Values.image.digests | default dict) (index . 1) }}@{{ . }}{{ end }}
{{- end }}

{{- define "sluice.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- /* What every pod that is neither a gateway nor on a node's root runs as. */}}
{{- define "sluice.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "sluice.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* sluice.spread: (list . component): topologySpreadConstraints of its replicas. */}}
{{- define "sluice.spread" -}}
{{- $spread := list }}
{{- $selector := dict "labelSelector" (dict "matchLabels" (include "sluice.selector" . | fromYaml)) }}
{{- range (index . 0).Values.topologySpread }}
{{- $spread = append $spread (merge (dict) . $selector) }}
{{- end }}
{{- toYaml $spread }}
{{- end }}

{{- /* sluice.apart: (list . component): replicas are on different nodes, if there are more. For spreading, the scheduler leaves
       nodes out of account that lack any of the labels, as a zone's: that alone would do nothing in a cluster without zones. */}}
{{- define "sluice.apart" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- include "sluice.selector" . | nindent 12 }}
{{- end }}

{{- /* sluice.affinity: (list . component values): the affinity of the values, else the chart's own. */}}
{{- define "sluice.affinity" -}}
{{- with (index . 2).affinity }}
{{- toYaml . }}
{{- else }}
{{- include "sluice.apart" . }}
{{- end }}
{{- end }}

{{- /* The release's control plane in the cluster, as JSON; empty where there is none, or no cluster to ask. The labels find it under
       any name. */}}
{{- define "sluice.running" -}}
{{- $found := dict }}
{{- $selector := include "sluice.selector" (list . "controlplane") | fromYaml }}
{{- range (lookup "apps/v1" "StatefulSet" .Release.Namespace "" | toJson | fromJson).items }}
{{- $labels := .metadata.labels | default dict }}
{{- $own := true }}
{{- range $key, $value := $selector }}
{{- $own = and $own (eq (get $labels $key) $value) }}
{{- end }}
{{- if $own }}{{ $found = . }}{{ end }}
{{- end }}
{{- $found | toJson }}
{{- end }}

{{- define "sluice.keySecret" -}}
{{ .Values.controlPlane.keySecret | default (printf "%s-controlplane-key" (include "sluice.fullname" .)) }}
{{- end }}

{{- /* Names that the control plane is reached by, as a list in JSON. */}}
{{- define "sluice.serverNames" -}}
{{- $name := printf "%s-controlplane" (include "sluice.fullname" .) }}
{{- $service := printf "%s.%s" $name .Release.Namespace }}
{{- $peers := printf "%s-peers.%s" $name .Release.Namespace }}
{{- list $name $service (printf "%s.svc" $service) (printf "%s.svc.cluster.local" $service)
         (printf "%s.svc" $peers) (printf "%s.svc.cluster.local" $peers)
         (printf "*.%s.svc" $peers) (printf "*.%s.svc.cluster.local" $peers) "localhost" | toJson }}
{{- end }}

{{- define "sluice.server" -}}
{{ include "sluice.fullname" . }}-controlplane.{{ .Release.Namespace }}.svc:7460
{{- end }}

{{- /* Replicas as gateways know them: they try one after the other. The last name is that of all replicas: a gateway that runs
       keeps its arguments, and finds by it those that are added later. */}}
{{- define "sluice.replicas" -}}
{{- $names := list }}
{{- $name := printf "%s-controlplane" (include "sluice.fullname" .) }}
{{- range $i := until (int .Values.controlPlane.replicas) }}
{{- $names = append $names (printf "%s-%d.%s-peers.%s.svc:7460" $name $i $name $.Release.Namespace) }}
{{- end }}
{{- join "," (append $names (printf "%s-peers.%s.svc:7460" $name .Release.Namespace)) }}
{{- end }}

{{- /* sluice.clientArguments: how a client proves itself; its Secret is mounted at /etc/sluice/tls. */}}
{{- define "sluice.clientArguments" -}}
- --server={{ include "sluice.server" . }}
- --tls-ca=/etc/sluice/tls/ca.crt
- --tls-cert=/etc/sluice/tls/tls.crt
- --tls-key=/etc/sluice/tls/tls.key
{{- end }}
